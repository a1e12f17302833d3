// KernelSpec: the contract between the compiler and the backends.
//
// A generated kernel is an iteration space, buffers reached through index maps, and a list of
// instructions in SSA form over them. The axes are split in two: `outer` axes first, then `inner`
// ones, along which instructions of kind Reduce work. Every instruction is of one of two levels:
// Elem (a value per point of the whole space) or Outer (a value per point of the outer axes: reduce
// results and what is computed from them). An Outer value used by an Elem instruction is broadcast
// along the inner axes. So
//   Map     has no inner axes and no Reduce;   every value is Elem
//   Reduce  has Reduce instructions, and no Elem value depends on one
//   Row     has Elem values that depend on Reduce results (softmax, norms): rounds of reduce and
//   broadcast.
// A Reduce kernel may store Elem values too (an activation's gradient and the bias gradient in one
// pass).
//
// The compiler has already merged axes that can be merged, dropped axes of size 1, and put the axes
// in the order that suits memory: within outer and within inner the last axis is the fastest.
// Extents of 0 never get here.
#pragma once
#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

#include "graph/attributes.h"
#include "graph/op.h"
#include "ingot/shape.h"

namespace ingot {

inline constexpr int kMaxAxes = 16;

/// offset + sum over axes of stride[k] * i_k, in elements.
struct Affine {
  int64_t offset = 0;
  std::vector<int64_t> stride;  // one per axis of the kernel
  bool operator==(const Affine&) const = default;
};

/// True where 0 <= at(i) < extent.
struct Bound {
  Affine at;
  int64_t extent = 0;
  bool operator==(const Bound&) const = default;
};

enum class InstrKind : uint8_t {
  Load,      // buffers[buffer][map], fill where a bound fails; if indirect >= 0 the value v of that
             // instruction adds v * indirect_stride to the position: anything outside [0,
             // indirect_extent) raises an index error (site) and loads fill
  Const,     // imm, in dtype
  Arg,       // args[slot], a double given at launch, converted to dtype
  Index,     // int64 value of map
  InBounds,  // bool: all bounds hold
  Random,    // int32: Philox bits of generator slot `slot` at element number (map): see philox.h
  Compute,   // op(arg0, arg1, arg2): an elementwise primitive
  Reduce,    // op (Sum, Prod, Max, Min, ArgMax, ArgMin) of arg0 over the inner axes; Outer level
};
enum class Level : uint8_t { Elem, Outer };

struct Instr {
  InstrKind kind = InstrKind::Const;
  Op op = Op::Const;  // Compute, Reduce
  DType dtype =
      DType::Float32;  // of the result. 16-bit floats: computed in float32, rounded to the type
  Level level = Level::Elem;
  int32_t arg[3] = {-1, -1, -1};  // instruction numbers
  int32_t buffer = -1;            // Load
  int32_t slot = -1;              // Arg, Random
  double fvalue = 0;              // Const (floating types), Load: fill
  int64_t ivalue =
      0;       // Const (integer types and bool), Load: fill; Random: offset added to the counter
  Affine map;  // Load, Index, Random
  std::vector<Bound> bounds;  // Load, InBounds
  int32_t indirect = -1;      // Load: instruction giving the index
  int64_t indirect_stride = 0, indirect_extent = 0;
  int32_t site = -1;  // Load with indirect: which source location to name in an index error
};

/// f(n) for every instruction n that this one reads.
template <class F>
void for_each_operand(const Instr& in, F f) {
  for (int a : in.arg)
    if (a >= 0) f(a);
  if (in.indirect >= 0) f(in.indirect);
}

struct Store {
  int32_t value =
      -1;  // instruction; its level decides whether it is stored per element or per outer point
  int32_t buffer = -1;
  Affine map;               // over all axes (inner strides are 0 for Outer values)
  bool predicated = false;  // store nothing when the run's status word is set
  int32_t over = -1;        // the buffer that is read in this very memory; -1: none is known
};

struct BufferSpec {
  DType dtype = DType::Float32;
  int64_t numel = 0;  // elements reachable, for bounds checks in tests
  bool written = false;
  bool may_alias =
      false;  // the same memory is read and written, element by element at the same position
};

struct KernelSpec {
  std::vector<int64_t> extent;  // outer axes, then inner axes
  int n_outer = 0;
  std::vector<BufferSpec> buffers;
  std::vector<Instr> instrs;
  std::vector<Store> stores;
  std::string label;  // for people: the ops in it

  int n_axes() const { return static_cast<int>(extent.size()); }
  int n_inner() const { return n_axes() - n_outer; }
  int64_t outer_size() const;
  int64_t inner_size() const;
  bool has_reduce() const;
  /// Do Elem values depend on Reduce results?
  bool is_row() const;
};

/// Equal but for numbers (extents, strides other than 0 and 1, offsets): one piece of code can run
/// both.
bool same_structure(const KernelSpec& a, const KernelSpec& b);
std::string to_string(const KernelSpec& k);
/// Throws Error(Internal) when an instruction refers to a later one, a level or a buffer is wrong,
/// ...
void verify(const KernelSpec& k);

// Library calls

struct OperandSpec {
  DType dtype = DType::Float32;
  Dims shape, stride;  // stride in elements; 0: broadcast
  int64_t offset = 0;
};
/// What a library call does with its result before it is stored. An operand that one of them reads
/// follows the op's own operands.
enum class Epilogue : uint8_t {
  Bias,          // adds a vector: Matmul [N], Conv [O], ConvGradInput [C]
  Residual,      // Conv: adds the last operand, of the result's shape
  Relu,          // negative results become 0
  GeluTanh,      // Matmul: GELU by tanh
  KeepSum,       // with GeluTanh: what GELU is applied to is the result, GELU of it result 1
  GeluTanhGrad,  // Matmul: times GELU's derivative at the last operand
  ReluGrad,      // Matmul: 0 where the last operand is not positive
  BiasGrad,      // Matmul: result 1 is the sums of operand a along K, [M]
};
inline constexpr int kEpilogues = 8;

/// The epilogues of a call, in the order in which they are applied: that of the enum.
class Epilogues {
 public:
  constexpr Epilogues() = default;
  constexpr Epilogues(std::initializer_list<Epilogue> all) {
    for (Epilogue e : all) set(e);
  }
  constexpr bool has(Epilogue e) const { return bits_ >> static_cast<int>(e) & 1; }
  constexpr bool empty() const { return bits_ == 0; }
  constexpr bool within(Epilogues all) const { return (bits_ & ~all.bits_) == 0; }
  constexpr void set(Epilogue e, bool on = true) {
    const auto bit = static_cast<uint16_t>(1 << static_cast<int>(e));
    bits_ = static_cast<uint16_t>(on ? bits_ | bit : bits_ & ~bit);
  }
  constexpr Epilogues with(Epilogue e) const {
    Epilogues more = *this;
    more.set(e);
    return more;
  }
  constexpr Epilogues without(Epilogues others) const {
    Epilogues fewer = *this;
    fewer.bits_ &= static_cast<uint16_t>(~others.bits_);
    return fewer;
  }
  bool operator==(const Epilogues&) const = default;

 private:
  uint16_t bits_ = 0;
};
std::string to_string(Epilogues all);  // "+bias+relu"

/// A call of a library or of a hand-written kernel. Operands, results first (`written` of them):
///   Matmul          out [b.., M, N], a [b.., M, K], b [b.., K, N], (bias [N]).
///                   GeluTanh with KeepSum: out, GELU of it (any shape), a, b. GeluTanhGrad and
///                   ReluGrad: after b (no bias) comes what GELU was applied to, what ReLU gave;
///                   both are dense and row-major. BiasGrad: out, the sums [M], a, b
///   ScatterAdd      out, index (int64 or int32), value; out is zeroed first
///   Scatter         out, base, index, value; out begins as base
///   Scan            out, in
///   Sort            out (int64), in; out may be shorter along the axis
///   Attention       o, (lse: when two are written), q, k, v, (bias)
///   AttentionGrad   dq, dk, dv, q, k, v, o, do, lse, (bias)
///   recurrent ops   those of the op's results that are written, then its operands (graph/ops.def)
///   Conv            y, x, w, (bias [O]), (residual, of y's shape)
///   ConvGradInput   gx, gy, w, (bias [C])
///   ConvGradWeight  gw, x, gy
///   Fold            out, value, (position)
///   Linalg          out, a, (b)
///   ToDevice        out, in; between devices
struct LibrarySpec {
  Op op = Op::Matmul;
  Attributes attrs;
  /// Operand k is buffer k of the launch; the first `written` are written.
  std::vector<OperandSpec> operands;
  int written = 1;
  uint32_t results = 1;  // bit k: the op's result k is written
  Epilogues epilogues;
  bool tf32 = false;        // products of float32 may round their operands to TF32
  bool accumulate = false;  // out += instead of out =
  /// Matmul: the next launch reads before it waits for what a previous launch has written, so this
  /// one must not let it start early.
  bool holds_back_next = false;
  /// Bit k: nobody writes operand k's buffer between the start of the run and this call.
  uint32_t unwritten_operands = 0;
  int32_t site = -1;

  bool gives(int result) const { return results >> result & 1; }
  bool has(Epilogue e) const { return epilogues.has(e); }
  /// Does more follow than a bias and a residual?
  bool activates() const { return !epilogues.within({Epilogue::Bias, Epilogue::Residual}); }
};
/// The axis along which ScatterAdd, Scatter, Scan and Sort work.
int axis_of(const LibrarySpec& l);
std::string to_string(const LibrarySpec& l);

}  // namespace ingot
