// Op::Linalg: each matrix of the batch is copied to column-major scratch, factorised (lapack.h) and
// written back.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <memory>

#include "backend/cpu/library.h"
#include "backend/cpu/support/lapack.h"
#include "backend/cpu/support/memory.h"
#include "backend/cpu/support/threads.h"

namespace ingot::cpu {
namespace {

template <class T>
class Linalg final : public CpuExecutable {
 public:
  explicit Linalg(const LibrarySpec& s)
      : spec_(s), attrs_(s.attrs.as<LinalgAttrs>()), kind_(attrs_.kind) {
    const Dims& a = s.operands[1].shape;
    const int r = a.size();
    n_ = static_cast<int>(a[r - 1]);
    columns_ = two()                          ? static_cast<int>(s.operands[2].shape[r - 1])
               : kind_ == LinalgKind::Inverse ? n_
                                              : 0;
    for (int i = 0; i < r - 2; ++i) batch_ *= a[i];
    each_ = (static_cast<size_t>(n_) * static_cast<size_t>(n_ + columns_) * sizeof(T) +
             static_cast<size_t>(n_) * sizeof(int) + 63) /
            64 * 64;
    scratch_bytes = each_ * static_cast<size_t>(batch_) + 64;
  }

  void run(void* const* buffers, void* scratch, const RunArgs& args) override {
    char* work = line_aligned(scratch);
    // Threads share a batch of small matrices; LAPACK parallelises a large one itself.
    const int64_t grain =
        n_ > 48 ? batch_
                : std::max<int64_t>(1, 20000 / (int64_t{n_} * n_ * std::max(1, n_ + columns_)));
    parallel_for(batch_, grain, [&](int64_t b, int64_t e) {
      for (int64_t i = b; i < e; ++i) one(buffers, work + static_cast<size_t>(i) * each_, i, args);
    });
  }

 private:
  bool two() const { return kind_ == LinalgKind::Solve || kind_ == LinalgKind::Triangular; }

  // First element of matrix i of an operand.
  static int64_t start(const OperandSpec& o, int64_t i, int matrix_dims) {
    int64_t at = o.offset;
    for (int d = o.shape.size() - matrix_dims - 1; d >= 0; --d) {
      at += i % o.shape[d] * o.stride[d];
      i /= o.shape[d];
    }
    return at;
  }
  void load(const void* from, const OperandSpec& o, int64_t i, T* to, int rows, int cols) const {
    const int r = o.shape.size();
    const T* p = static_cast<const T*>(from) + start(o, i, 2);
    for (int y = 0; y < rows; ++y)
      for (int x = 0; x < cols; ++x)
        to[y + static_cast<int64_t>(x) * rows] = p[y * o.stride[r - 2] + x * o.stride[r - 1]];
  }
  void store(void* to, const OperandSpec& o, int64_t i, const T* from, int rows, int cols) const {
    const int r = o.shape.size();
    T* p = static_cast<T*>(to) + start(o, i, 2);
    for (int y = 0; y < rows; ++y)
      for (int x = 0; x < cols; ++x)
        p[y * o.stride[r - 2] + x * o.stride[r - 1]] = from[y + static_cast<int64_t>(x) * rows];
  }

  void failed(int64_t matrix, int pivot, const RunArgs& args) const {
    int32_t ok = RunStatus::Ok;
    if (!args.status || !std::atomic_ref<int32_t>(args.status->code)
                             .compare_exchange_strong(ok, RunStatus::Unsolvable))
      return;
    args.status->site = spec_.site;
    args.status->value = matrix;
    args.status->extent = pivot | static_cast<int64_t>(kind_) << 32;
  }

  void one(void* const* buffers, char* work, int64_t i, const RunArgs& args) const {
    T *a = reinterpret_cast<T*>(work), *b = a + static_cast<int64_t>(n_) * n_;
    int* pivots = reinterpret_cast<int*>(b + static_cast<int64_t>(n_) * columns_);
    const OperandSpec& out = spec_.operands[0];
    load(buffers[1], spec_.operands[1], i, a, n_, n_);
    if (two()) load(buffers[2], spec_.operands[2], i, b, n_, columns_);
    int bad = 0;
    switch (kind_) {
      case LinalgKind::Inverse:
        std::fill(b, b + static_cast<int64_t>(n_) * n_, T(0));
        for (int k = 0; k < n_; ++k) b[k + static_cast<int64_t>(k) * n_] = 1;
        [[fallthrough]];
      case LinalgKind::Solve:
        bad = lu_factor(a, n_, pivots);
        if (!bad) lu_solve(a, pivots, attrs_.transposed, b, n_, columns_);
        break;
      case LinalgKind::Triangular:
        bad = triangular_solve(a, attrs_.upper, attrs_.transposed, attrs_.unit_diagonal, b, n_,
                               columns_);
        break;
      case LinalgKind::Cholesky:
        return cholesky(buffers[0], a, i, args);
      case LinalgKind::Slogdet:
        return slogdet(buffers[0], a, pivots, i);
    }
    if (bad) {
      failed(i, bad, args);
      std::fill(b, b + static_cast<int64_t>(n_) * columns_, std::numeric_limits<T>::quiet_NaN());
    }
    store(buffers[0], out, i, b, n_, columns_);
  }

  // LAPACK's upper triangle of the transposed matrix is the lower one asked for.
  void cholesky(void* out, T* a, int64_t i, const RunArgs& args) const {
    for (int y = 0; y < n_; ++y)
      for (int x = 0; x < y; ++x)
        std::swap(a[y + static_cast<int64_t>(x) * n_], a[x + static_cast<int64_t>(y) * n_]);
    const int bad = cholesky_factor(a, n_);
    if (bad) failed(i, bad, args);
    for (int y = 0; y < n_; ++y)
      for (int x = 0; x <= y; ++x) {
        a[y + static_cast<int64_t>(x) * n_] = a[x + static_cast<int64_t>(y) * n_];
        if (x != y) a[x + static_cast<int64_t>(y) * n_] = 0;
      }
    store(out, spec_.operands[0], i, a, n_, n_);
  }

  void slogdet(void* out, T* a, int* pivots, int64_t i) const {
    const OperandSpec& o = spec_.operands[0];
    T* p = static_cast<T*>(out) + start(o, i, 1);
    T sign = 1;
    double sum = 0;
    if (lu_factor(a, n_, pivots)) {
      sign = 0;
      sum = -std::numeric_limits<double>::infinity();
    } else {
      for (int k = 0; k < n_; ++k) {
        const T d = a[k + static_cast<int64_t>(k) * n_];
        if (pivots[k] != k + 1) sign = -sign;
        if (d < 0) sign = -sign;
        if (std::isnan(d)) sign = d;
        sum += std::log(std::fabs(static_cast<double>(d)));
      }
    }
    p[0] = sign;
    p[o.stride[o.shape.size() - 1]] = static_cast<T>(sum);
  }

  LibrarySpec spec_;
  LinalgAttrs attrs_;
  LinalgKind kind_;
  int n_ = 0, columns_ = 0;
  int64_t batch_ = 1;
  size_t each_ = 0;
};

}  // namespace

std::unique_ptr<CpuExecutable> prepare_linalg(const LibrarySpec& spec, const char*&) {
  if (spec.operands[0].dtype == DType::Float64) return std::make_unique<Linalg<double>>(spec);
  return std::make_unique<Linalg<float>>(spec);
}

}  // namespace ingot::cpu
