// What an op needs besides its operands: one struct per kind of op, named in its row of
// graph/ops.def. A node, the compiler's value, a step of a recorded function and a library call
// hold the same Attributes. Each struct lists its fields once, in each(); equality, hashing, plan
// keys and printing follow from that.
//
// What is part of every node (its shape, type and device) is no attribute.
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/ref.h"
#include "graph/checks.h"
#include "ingot/shape.h"

namespace ingot {

struct Composite;
struct RecordedFunction;

/// Set: the last value stays; NaN wins in Max and Min.
enum class ScatterMode : uint8_t { Set, Prod, Max, Min };
/// LogSum: log of the running sum of exp. ArgMax, ArgMin: int64, the position of the extreme so
/// far, the last of equals; NaN wins.
enum class ScanKind : uint8_t { Sum, Prod, LogSum, ArgMax, ArgMin };
enum class LinalgKind : uint8_t {
  Solve,       // a [.., N, N], b [.., N, K]: x with a x = b
  Triangular,  // the same for a triangular a
  Inverse,     // a [.., N, N]
  Cholesky,    // a [.., N, N]: lower l with l l^T = a; only a's lower triangle is read
  Slogdet,  // a [.., N, N] -> [.., 2]: sign and logarithm of the absolute value of the determinant
};
/// Which keys a query attends to. Newest: attention of one query over a cache, with one key and
/// value more that need not be in the cache yet (ops/cached_attention.h).
enum class AttentionMask : uint8_t { None, Causal, Newest };

const char* name_of(ScatterMode mode);
const char* name_of(ScanKind kind);
const char* name_of(LinalgKind kind);
const char* name_of(AttentionMask mask);

// --- The structs. f(name, value) for each field that says what the op computes.

struct NoAttrs {
  template <class F>
  void each(F&&) const {}
};

/// One number: `f` for floating types, `i` for the others (both are set).
struct ConstAttrs {
  double f = 0;
  int64_t i = 0;
  template <class F>
  void each(F&& visit) const {
    visit("f", f);
    visit("i", i);
  }
};

/// An argument of the plan: its value is not part of what is computed.
struct ArgAttrs {
  double value = 0;
  std::shared_ptr<const double> source;  // optional: read when a captured run is repeated
  template <class F>
  void each(F&&) const {}
};

/// Philox bits of the generator with this seed from this counter offset on. Plans number
/// generators.
struct RandomAttrs {
  uint64_t seed = 0;
  int64_t offset = 0;
  template <class F>
  void each(F&& visit) const {
    visit("seed", seed);
    visit("offset", offset);
  }
};

struct PermuteAttrs {
  Dims order;  // order[i]: which input axis becomes axis i
  template <class F>
  void each(F&& visit) const {
    visit("order", order);
  }
};

/// One region of a value, per axis: start + i * step. The step of a Slice may be negative.
struct SliceAttrs {
  Dims start, step;
  template <class F>
  void each(F&& visit) const {
    visit("start", start);
    visit("step", step);
  }
};

struct PadAttrs {
  Dims front;  // elements added before each axis; the shape says how many are added after it
  double value = 0;
  template <class F>
  void each(F&& visit) const {
    visit("front", front);
    visit("value", value);
  }
};

struct WindowAttrs {
  Dims stride, dilation;  // of the last axes
  template <class F>
  void each(F&& visit) const {
    visit("stride", stride);
    visit("dilation", dilation);
  }
};

struct FoldAttrs {
  Dims stride, dilation, front, window;
  template <class F>
  void each(F&& visit) const {
    visit("stride", stride);
    visit("dilation", dilation);
    visit("front", front);
    visit("window", window);
  }
};

struct ConvAttrs {
  Dims stride, dilation, front, behind;  // front, behind: zeros added before and after each dim
  int64_t groups = 1;
  template <class F>
  void each(F&& visit) const {
    visit("stride", stride);
    visit("dilation", dilation);
    visit("front", front);
    visit("behind", behind);
    visit("groups", groups);
  }
};

struct ReduceAttrs {
  uint32_t axes = 0;  // bit k: axis k is reduced
  template <class F>
  void each(F&& visit) const {
    visit("axes", axes);
  }
};

struct CatAttrs {
  int axis = 0;
  template <class F>
  void each(F&& visit) const {
    visit("axis", axis);
  }
};

struct IndexAttrs {
  int axis = 0;
  Check check = Check::None;  // on whose behalf the index is checked
  template <class F>
  void each(F&& visit) const {
    visit("axis", axis);
    visit("check", check);
  }
};

struct ScatterAttrs {
  int axis = 0;
  ScatterMode mode = ScatterMode::Set;
  Check check = Check::None;
  template <class F>
  void each(F&& visit) const {
    visit("axis", axis);
    visit("mode", mode);
    visit("check", check);
  }
};

struct ScanAttrs {
  int axis = 0;
  ScanKind kind = ScanKind::Sum;
  template <class F>
  void each(F&& visit) const {
    visit("axis", axis);
    visit("kind", kind);
  }
};

struct SortAttrs {
  int axis = 0;
  bool descending = false;
  template <class F>
  void each(F&& visit) const {
    visit("axis", axis);
    visit("descending", descending);
  }
};

struct AttentionAttrs {
  AttentionMask mask = AttentionMask::None;
  double scale = 1;
  bool causal() const { return mask == AttentionMask::Causal; }
  bool newest() const { return mask == AttentionMask::Newest; }
  template <class F>
  void each(F&& visit) const {
    visit("mask", mask);
    visit("scale", scale);
  }
};

struct RecurrentAttrs {
  bool reverse = false;  // against time
  bool relu = false;     // Rnn: ReLU instead of tanh
  template <class F>
  void each(F&& visit) const {
    visit("reverse", reverse);
    visit("relu", relu);
  }
};

/// Number of a result: of an op with several, or (Assign) of a call of a recorded function.
struct ResultAttrs {
  int index = 0;
  template <class F>
  void each(F&& visit) const {
    visit("index", index);
  }
};

struct LinalgAttrs {
  LinalgKind kind = LinalgKind::Solve;
  bool transposed = false;     // Solve, Triangular: a^T x = b
  bool upper = false;          // Triangular
  bool unit_diagonal = false;  // Triangular: ones on the diagonal, which is not read
  template <class F>
  void each(F&& visit) const {
    visit("kind", kind);
    visit("transposed", transposed);
    visit("upper", upper);
    visit("unit_diagonal", unit_diagonal);
  }
};

/// Recorded functions of the same content are one object with one id (graph/recorded_function.h).
struct CallAttrs {
  std::shared_ptr<const RecordedFunction> function;
  int64_t id = 0;
  template <class F>
  void each(F&& visit) const {
    visit("function", id);
  }
};

/// Which composite (graph/composite.h). CompositeGrad: bit k of `wanted` asks for the gradient of
/// operand k.
struct CompositeAttrs {
  const Composite* what = nullptr;
  uint32_t wanted = 0;
  template <class F>
  void each(F&& visit) const {
    visit("composite", what);
    visit("wanted", wanted);
  }
};

// --- All of them in one value

/// A shared, immutable T: what is too large to be stored in every node.
template <class T>
class Boxed {
 public:
  Boxed(T v) : p_(new Counted{{1}, std::move(v)}) {}  // NOLINT(google-explicit-constructor)
  Boxed(const Boxed& o) : p_(o.p_) { p_->refs.fetch_add(1, std::memory_order_relaxed); }
  Boxed(Boxed&& o) noexcept : Boxed(static_cast<const Boxed&>(o)) {}
  Boxed& operator=(Boxed o) noexcept {
    std::swap(p_, o.p_);
    return *this;
  }
  ~Boxed() {
    if (p_->refs.fetch_sub(1, std::memory_order_acq_rel) == 1) delete p_;
  }
  const T& operator*() const { return p_->value; }

 private:
  struct Counted {
    std::atomic<uint32_t> refs;
    T value;
  };
  Counted* p_;
};

class Attributes {
  template <class T>
  static constexpr bool kInline = sizeof(T) <= 24;
  template <class T>
  using Stored = std::conditional_t<kInline<T>, T, Boxed<T>>;

 public:
  Attributes() : v_() {}
  template <class T>
  requires requires(const T& t) {
    t.each([](const char*, const auto&) {});
  }
  Attributes(T attrs) : v_(Stored<T>(std::move(attrs))) {}  // NOLINT(google-explicit-constructor)
  // Most ops have none: the rest is out of line.
  Attributes(const Attributes& o) : v_() {
    if (!o.empty()) copy(o);
  }
  Attributes& operator=(const Attributes& o) {
    if (!empty() || !o.empty()) copy(o);
    return *this;
  }
  Attributes(Attributes&& o) noexcept : Attributes(static_cast<const Attributes&>(o)) {}
  Attributes& operator=(Attributes&& o) noexcept {
    return *this = static_cast<const Attributes&>(o);
  }
  ~Attributes() {
    if (!empty()) clear();
  }

  /// The struct named in the op's row; asking for another is std::bad_variant_access.
  template <class T>
  const T& as() const {
    if constexpr (kInline<T>)
      return std::get<T>(v_);
    else
      return *std::get<Boxed<T>>(v_);
  }
  template <class T>
  bool is() const {
    return std::holds_alternative<Stored<T>>(v_);
  }
  bool empty() const { return v_.index() == 0; }

  /// Appends a few words for each field, which are equal exactly when the fields are: NaN equals
  /// itself, -0.0 is not 0.0.
  void append_words(std::vector<uint64_t>& to) const {
    if (!empty()) append(to);
  }
  friend bool operator==(const Attributes& a, const Attributes& b);
  uint64_t hash() const;
  /// "axis=1 mode=max"
  std::string text() const;

 private:
  using Variant =
      std::variant<NoAttrs, ConstAttrs, ReduceAttrs, CatAttrs, IndexAttrs, ScatterAttrs, ScanAttrs,
                   SortAttrs, AttentionAttrs, RecurrentAttrs, ResultAttrs, LinalgAttrs, RandomAttrs,
                   ArgAttrs, CallAttrs, CompositeAttrs, Boxed<PermuteAttrs>, Boxed<SliceAttrs>,
                   Boxed<PadAttrs>, Boxed<WindowAttrs>, Boxed<FoldAttrs>, Boxed<ConvAttrs>>;
  void copy(const Attributes& o);
  void clear();
  void append(std::vector<uint64_t>& to) const;

  union {
    Variant v_;  // destroyed by clear()
  };
};

}  // namespace ingot
