// Matmul by packed blocks (gemm.h): any strides, batches, bias, activation, accumulation. 16-bit
// floats compute in float32, integers in int64. The sum over k is split at the same points whatever
// the number of threads, so results do not depend on it.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "backend/cpu/gemm/gemm.h"
#include "backend/cpu/gemm/matmul_shape.h"
#include "backend/cpu/library.h"
#include "backend/cpu/support/half.h"
#include "backend/cpu/support/memory.h"
#include "backend/cpu/support/move.h"
#include "backend/cpu/support/threads.h"

namespace ingot::cpu {

namespace {

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

/// Scratch of a thread, kept between calls.

class FloatMatmul final : public CpuExecutable {
 public:
  /// `transposed`: the spec is that of the transposed product, and the bias belongs to its rows.
  explicit FloatMatmul(const LibrarySpec& spec, bool transposed = false)
      : transposed_(transposed),
        spec_(spec),
        sh_(spec),
        type_(spec.operands[0].dtype),
        compute_(type_ == DType::Float64 ? DType::Float64 : DType::Float32),
        g_(compute_ == DType::Float64 ? gemm_f64() : gemm_f32()),
        size_(static_cast<int64_t>(size_of(compute_))) {
    // Float32 and float64 results are built in place when rows of C are dense.
    in_place_ = type_ == compute_ && (sh_.c_n == 1 || sh_.N == 1) &&
                !(spec.accumulate && (spec.has(Epilogue::Bias) || spec.activates()));
    panels_ = ceil_div(sh_.N, g_.nr);
    const double flops =
        2.0 * static_cast<double>(sh_.M) * static_cast<double>(sh_.N) * static_cast<double>(sh_.K);
    serial_ = flops * static_cast<double>(sh_.batches) < 1e6;
    // Small members of a batch are each computed by one thread; otherwise threads share one packed
    // B.
    local_ = serial_ || (sh_.batches >= 4 && sh_.N * sh_.K <= (256 << 10));
    // A is read in place, unless there are so many columns that a packed copy pays off, or its
    // lines conflict in the cache: steps along k do, a tile's few rows do not.
    const int64_t stride = sh_.a_k == 1 ? sh_.a_m : sh_.a_m == 1 ? sh_.a_k : 0;
    a_unpacked_ = spec.operands[1].dtype == compute_ && stride > 0 &&
                  (sh_.a_k == 1 || stride * size_ % 4096 != 0) && sh_.N <= 1024;
    along_ = a_unpacked_ && sh_.a_k != 1;
    // B is read in place where there are too few rows to pay for packing it.
    b_unpacked_ = !local_ && spec.operands[2].dtype == compute_ && sh_.b_n == 1 &&
                  sh_.b_k >= sh_.N && sh_.N % g_.nr == 0 && sh_.M <= 8 * g_.mr;
    bias_unpacked_ = spec.has(Epilogue::Bias) && !transposed &&
                     spec.operands[3].dtype == compute_ && spec.operands[3].stride.back() == 1;
    if (!local_ && !b_unpacked_)
      scratch_bytes = static_cast<size_t>(sh_.K * panels_ * g_.nr * size_ + 64);
    require_thread_memory(static_cast<size_t>(a_bytes() + (local_ ? b_bytes() : 0) + temp_bytes()));
  }

  void run(void* const* buffers, void* scratch, const RunArgs&) override {
    const int a = transposed_ ? 2 : 1;  // operands are swapped, buffers are not
    Call c{at(buffers[0], 0), at(buffers[a], 1), at(buffers[3 - a], 2),
           spec_.has(Epilogue::Bias) ? at(buffers[3], 3) : nullptr, nullptr};
    if (local_) {
      auto work = [&](int64_t begin, int64_t end) {
        for (int64_t n = begin; n < end; ++n) one_of_batch(c, n);
      };
      if (serial_)
        work(0, sh_.batches);
      else
        parallel_for(sh_.batches, std::max<int64_t>(1, sh_.batches / (16 * get_num_threads())),
                     work);
      return;
    }
    for (int64_t n = 0; n < sh_.batches; ++n) shared(c, n, static_cast<char*>(scratch));
  }

 private:
  struct Call {
    char *c, *a, *b, *bias;
    char* packed;
  };
  char* at(void* p, int k) const {
    return static_cast<char*>(p) +
           spec_.operands[static_cast<size_t>(k)].offset *
               static_cast<int64_t>(size_of(spec_.operands[static_cast<size_t>(k)].dtype));
  }
  Call member(const Call& c, int64_t n) const {
    int64_t a = 0, b = 0, o = 0;
    sh_.offsets(n, a, b, o);
    const int64_t in = static_cast<int64_t>(size_of(spec_.operands[1].dtype)),
                  bn = static_cast<int64_t>(size_of(spec_.operands[2].dtype)),
                  out = static_cast<int64_t>(size_of(type_));
    return {c.c + o * out, c.a + a * in, c.b + b * bn, c.bias, nullptr};
  }
  int64_t depth(int64_t k) const { return std::min(g_.kc, sh_.K - k); }

  void pack_b(const Call& c, int64_t k, int64_t from, int64_t to, char* packed) const {
    const int64_t kc = depth(k), es = static_cast<int64_t>(size_of(spec_.operands[2].dtype));
    g_.pack(packed + (k * panels_ + from * kc) * g_.nr * size_, g_.nr,
            c.b + (k * sh_.b_k + from * g_.nr * sh_.b_n) * es, spec_.operands[2].dtype, sh_.b_k,
            sh_.b_n, kc, std::min(to * g_.nr, sh_.N) - from * g_.nr);
  }

  void one_of_batch(const Call& all, int64_t n) const {
    Call c = member(all, n);
    char* s = thread_memory(static_cast<size_t>(a_bytes() + b_bytes() + temp_bytes()));
    c.packed = s + a_bytes();
    for (int64_t k = 0; k < sh_.K; k += g_.kc) pack_b(c, k, 0, panels_, c.packed);
    for (int64_t m = 0; m < sh_.M; m += block_rows(sh_.M))
      for (int64_t j = 0; j < panels_; j += block_panels())
        block(c, m, block_rows(sh_.M), j, s, s + a_bytes() + b_bytes());
  }

  void shared(const Call& all, int64_t n, char* packed) const {
    Call c = member(all, n);
    c.packed = line_aligned(packed);
    const int64_t kbs = ceil_div(sh_.K, g_.kc), group = std::max<int64_t>(1, 4096 / (g_.nr * 8)),
                  groups = ceil_div(panels_, group);
    if (!b_unpacked_)
      parallel_for(kbs * groups, std::max<int64_t>(1, kbs * groups / (8 * get_num_threads())),
                   [&](int64_t b, int64_t e) {
                     for (int64_t t = b; t < e; ++t) {
                       const int64_t from = t % groups * group;
                       pack_b(c, t / groups * g_.kc, from, std::min(from + group, panels_),
                              c.packed);
                     }
                   });
    const int64_t nb = ceil_div(panels_, block_panels());
    // Enough blocks for the threads to finish together; where A's rows are neighbours in memory and
    // it is packed, complete cache lines of it.
    int64_t rows = block_rows(sh_.M);
    const int64_t step =
        !a_unpacked_ && sh_.a_m == 1 && rows % (4 * g_.mr) == 0 ? 4 * g_.mr : g_.mr;
    while (rows > std::max<int64_t>(2 * g_.mr, step) &&
           ceil_div(sh_.M, rows) * nb < 12 * get_num_threads())
      rows -= step;
    const int64_t mb = ceil_div(sh_.M, rows);
    parallel_for(mb * nb, 1, [&](int64_t b, int64_t e) {
      char* s = thread_memory(static_cast<size_t>(a_bytes() + temp_bytes()));
      for (int64_t t = b; t < e; ++t)
        block(c, t % mb * rows, rows, t / mb * block_panels(), s, s + a_bytes());
    });
  }

  int64_t block_rows(int64_t m) const {
    return std::min<int64_t>(ceil_div(m, g_.mr) * g_.mr, 12 * g_.mr);
  }
  int64_t a_bytes() const { return (g_.kc * block_rows(sh_.M) + 64) * size_; }
  int64_t b_bytes() const { return (sh_.K * panels_ * g_.nr + 64) * size_; }
  int64_t block_panels() const {
    return std::min<int64_t>(panels_, std::max<int64_t>(1, 512 / g_.nr));
  }
  int64_t temp_bytes() const { return in_place_ ? 0 : 12 * g_.mr * block_panels() * g_.nr * size_; }

  /// Rows [m, m + rows) by panels [j, j + block_panels()) of C, over all of k.
  void block(const Call& c, int64_t m, int64_t rows, int64_t j, char* a_pack, char* temp) const {
    rows = std::min(rows, sh_.M - m);
    const int64_t n0 = j * g_.nr, cols = std::min(block_panels() * g_.nr, sh_.N - n0);
    const int64_t es = static_cast<int64_t>(size_of(spec_.operands[1].dtype));
    char* out = in_place_ ? c.c + (m * sh_.c_m + n0) * size_ : temp;
    const int64_t ld = in_place_ ? sh_.c_m : cols;
    for (int64_t k = 0; k == 0 || k < sh_.K; k += g_.kc) {  // once even when K is 0: C becomes 0
      const int64_t kc = depth(k);
      char* a = c.a + (m * sh_.a_m + k * sh_.a_k) * es;
      if (!a_unpacked_) {
        g_.pack(a_pack, g_.mr, a, spec_.operands[1].dtype, sh_.a_k, sh_.a_m, kc, rows);
        a = a_pack;
      }
      const bool last = k + kc >= sh_.K;
      const GemmBlock g{kc,
                        a_unpacked_ && !along_ ? sh_.a_m : 0,
                        along_ ? sh_.a_k : g_.mr,
                        b_unpacked_ ? sh_.b_k : g_.nr,
                        b_unpacked_ ? g_.nr : kc * g_.nr,
                        ld,
                        nullptr,
                        last && bias_unpacked_ ? c.bias + n0 * size_ : nullptr};
      const int64_t step = a_unpacked_ ? sh_.a_m : kc;
      const char* b = b_unpacked_ ? c.b + (k * sh_.b_k + n0) * size_
                                  : c.packed + (k * panels_ + j * kc) * g_.nr * size_;
      for (int64_t i = 0; i < rows; i += g_.mr)
        g_.block(g, std::min<int64_t>(g_.mr, rows - i), cols, a + i * step * size_, b,
                 out + i * ld * size_, k > 0 || (in_place_ && spec_.accumulate));
    }
    if ((spec_.has(Epilogue::Bias) && !bias_unpacked_) || spec_.activates())
      for (int64_t i = 0; i < rows; ++i) epilogue(c, out + i * ld * size_, m + i, n0, cols);
    if (!in_place_ && type_ == compute_ && !spec_.accumulate) {
      const int64_t e[2] = {rows, cols}, ds[2] = {sh_.c_m, sh_.c_n}, ss[2] = {ld, 1};
      copy_box(c.c + (m * sh_.c_m + n0 * sh_.c_n) * size_, ds, out, ss, e, 2,
               static_cast<int>(size_));
    } else if (!in_place_) {
      for (int64_t i = 0; i < rows; ++i) deliver(c, out + i * ld * size_, m + i, n0, cols);
    }
  }

  void epilogue(const Call& c, char* row, int64_t m, int64_t n0, int64_t cols) const {
    if (compute_ == DType::Float64)
      finish_row(reinterpret_cast<double*>(row), c, m, n0, cols);
    else
      finish_row(reinterpret_cast<float*>(row), c, m, n0, cols);
  }
  double bias_at(const char* p, int64_t n) const {
    const int64_t i = n * spec_.operands[3].stride[spec_.operands[3].stride.size() - 1];
    switch (spec_.operands[3].dtype) {
      case DType::Float64:
        return reinterpret_cast<const double*>(p)[i];
      case DType::Float16:
        return f32_from_f16(reinterpret_cast<const uint16_t*>(p)[i]);
      case DType::BFloat16:
        return f32_from_bf16(reinterpret_cast<const uint16_t*>(p)[i]);
      default:
        return reinterpret_cast<const float*>(p)[i];
    }
  }
  template <class T>
  void finish_row(T* x, const Call& c, int64_t m, int64_t n0, int64_t cols) const {
    if (spec_.has(Epilogue::Bias) && !bias_unpacked_) {
      if (transposed_) {
        const T b = static_cast<T>(bias_at(c.bias, m));
        for (int64_t j = 0; j < cols; ++j) x[j] += b;
      } else {
        for (int64_t j = 0; j < cols; ++j) x[j] += static_cast<T>(bias_at(c.bias, n0 + j));
      }
    }
    if (!spec_.has(Epilogue::Relu)) return;
    for (int64_t j = 0; j < cols; ++j) x[j] = (x[j] > T(0) || x[j] != x[j]) ? x[j] : T(0);
  }

  /// A finished row from the temporary to C: strides, conversion, accumulation.
  void deliver(const Call& c, char* row, int64_t m, int64_t n0, int64_t cols) const {
    const int64_t at0 = m * sh_.c_m + n0 * sh_.c_n;
    for (int64_t j = 0; j < cols; ++j) {
      const int64_t p = at0 + j * sh_.c_n;
      if (type_ == DType::Float64) {
        double& o = reinterpret_cast<double*>(c.c)[p];
        o = reinterpret_cast<double*>(row)[j] + (spec_.accumulate ? o : 0.0);
        continue;
      }
      const float v = reinterpret_cast<float*>(row)[j];
      if (type_ == DType::Float32) {
        float& o = reinterpret_cast<float*>(c.c)[p];
        o = spec_.accumulate ? v + o : v;
      } else {
        uint16_t& o = reinterpret_cast<uint16_t*>(c.c)[p];
        const bool b = type_ == DType::BFloat16;
        const float old = spec_.accumulate ? (b ? f32_from_bf16(o) : f32_from_f16(o)) : 0.0f;
        o = b ? bf16_from_f32(v + old) : f16_from_f32(v + old);
      }
    }
  }

  bool transposed_;
  LibrarySpec spec_;
  Shape sh_;
  DType type_, compute_;
  const GemmOps& g_;
  int64_t size_, panels_ = 0;
  bool in_place_ = false, serial_ = false, local_ = false;
  bool b_unpacked_ = false, bias_unpacked_ = false;  // read in place by the inner kernel
  bool a_unpacked_ = false,
       along_ = false;  // A needs no packing; its neighbours in memory are rows
};

/// Integers and bool: plain loops, sums in int64 that wrap.
class IntMatmul final : public CpuExecutable {
 public:
  explicit IntMatmul(const LibrarySpec& spec) : spec_(spec), sh_(spec) {}
  void run(void* const* buffers, void*, const RunArgs&) override {
    const int64_t rows = sh_.batches * sh_.M;
    parallel_for(rows, std::max<int64_t>(1, (16 << 10) / std::max<int64_t>(1, sh_.N * sh_.K)),
                 [&](int64_t b, int64_t e) {
                   for (int64_t r = b; r < e; ++r) row(buffers, r);
                 });
  }

 private:
  static int64_t get(const void* p, DType t, int64_t i) {
    switch (t) {
      case DType::Int64:
        return static_cast<const int64_t*>(p)[i];
      case DType::Int32:
        return static_cast<const int32_t*>(p)[i];
      case DType::Int16:
        return static_cast<const int16_t*>(p)[i];
      case DType::Int8:
        return static_cast<const int8_t*>(p)[i];
      default:
        return static_cast<const uint8_t*>(p)[i];
    }
  }
  static void put(void* p, DType t, int64_t i, int64_t v, bool add) {
    if (add)
      v = static_cast<int64_t>(static_cast<uint64_t>(v) + static_cast<uint64_t>(get(p, t, i)));
    switch (t) {
      case DType::Int64:
        static_cast<int64_t*>(p)[i] = v;
        return;
      case DType::Int32:
        static_cast<int32_t*>(p)[i] = static_cast<int32_t>(v);
        return;
      case DType::Int16:
        static_cast<int16_t*>(p)[i] = static_cast<int16_t>(v);
        return;
      case DType::Bool:
        static_cast<uint8_t*>(p)[i] = v != 0;
        return;
      default:
        static_cast<uint8_t*>(p)[i] = static_cast<uint8_t>(v);
    }
  }
  void row(void* const* buffers, int64_t r) const {
    int64_t a = spec_.operands[1].offset, b = spec_.operands[2].offset,
            c = spec_.operands[0].offset;
    sh_.offsets(r / sh_.M, a, b, c);
    const int64_t m = r % sh_.M;
    const DType at = spec_.operands[1].dtype, bt = spec_.operands[2].dtype,
                ct = spec_.operands[0].dtype;
    std::vector<uint64_t> sum(static_cast<size_t>(sh_.N), 0);
    for (int64_t k = 0; k < sh_.K; ++k) {
      const uint64_t x = static_cast<uint64_t>(get(buffers[1], at, a + m * sh_.a_m + k * sh_.a_k));
      for (int64_t n = 0; n < sh_.N; ++n)
        sum[n] += x * static_cast<uint64_t>(get(buffers[2], bt, b + k * sh_.b_k + n * sh_.b_n));
    }
    for (int64_t n = 0; n < sh_.N; ++n) {
      int64_t v = static_cast<int64_t>(sum[n]);
      if (spec_.has(Epilogue::Bias))
        v += get(buffers[3], spec_.operands[3].dtype,
                 spec_.operands[3].offset + n * spec_.operands[3].stride.back());
      if (spec_.has(Epilogue::Relu)) v = std::max<int64_t>(v, 0);
      put(buffers[0], ct, c + m * sh_.c_m + n * sh_.c_n, v, spec_.accumulate);
    }
  }
  LibrarySpec spec_;
  Shape sh_;
};

// Few rows by a large B whose columns are dense (a layer's weight): the transposed product reads B
// in place, where the product itself would pack all of it for little work.
bool turns(const LibrarySpec& spec) {
  const Shape sh(spec);
  const DType t = spec.operands[0].dtype;
  const GemmOps& g = t == DType::Float64 ? gemm_f64() : gemm_f32();
  if ((t != DType::Float32 && t != DType::Float64) || spec.operands[1].dtype != t ||
      spec.operands[2].dtype != t)
    return false;
  return sh.batches == 1 && !spec.accumulate && sh.b_k == 1 && sh.M % g.nr == 0 && sh.M <= 64 &&
         sh.K >= 64 && sh.N >= 4 * sh.M;
}
LibrarySpec transposed(LibrarySpec s) {
  auto swap_last = [](OperandSpec& o) {
    const int r = o.shape.size();
    std::swap(o.shape[r - 1], o.shape[r - 2]);
    std::swap(o.stride[r - 1], o.stride[r - 2]);
  };
  if (s.operands[0].stride.empty()) s.operands[0].stride = row_major(s.operands[0].shape);
  for (size_t k = 0; k < 3; ++k) swap_last(s.operands[k]);
  std::swap(s.operands[1], s.operands[2]);
  return s;
}

}  // namespace

const char* matmul_refuses(const LibrarySpec& spec) {
  const bool fl = is_float(spec.operands[0].dtype);
  for (const OperandSpec& o : spec.operands)
    if (is_float(o.dtype) != fl) return "integers and floats are mixed";
  return nullptr;
}

const char* int_matmul_refuses(const LibrarySpec& spec) {
  return is_float(spec.operands[0].dtype) ? "it is for integers" : matmul_refuses(spec);
}

std::unique_ptr<CpuExecutable> prepare_matmul(const LibrarySpec& spec, const char*& why) {
  if (!is_float(spec.operands[0].dtype)) {
    why = "it is for floats";
    return nullptr;
  }
  if (turns(spec)) return std::make_unique<FloatMatmul>(transposed(spec), true);
  return std::make_unique<FloatMatmul>(spec);
}

std::unique_ptr<CpuExecutable> prepare_int_matmul(const LibrarySpec& spec, const char*&) {
  return std::make_unique<IntMatmul>(spec);
}

}  // namespace ingot::cpu
