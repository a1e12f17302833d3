// Convolutions as matrix products whose second factor is gathered while it is packed (an im2col
// that is never stored): all types, any strides. The sum runs in blocks of the same size
// whatever the number of threads.
#include <algorithm>
#include <memory>
#include <vector>

#include "backend/cpu/gemm/gemm.h"
#include "backend/cpu/library.h"
#include "backend/cpu/support/element.h"
#include "backend/cpu/support/threads.h"
#include "codegen/conv_shape.h"
#include "ingot/error.h"

namespace ingot::cpu {

namespace {

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

/// C[m, n] = sum over k of A[m, k] B[k, n], for each sample and group (or for each group, in the
/// weight's gradient). A is at m * a_m + Row::a; B at Row::b + Col::b + the offset of the
/// coordinates Row::d + Col::p; C at m * c_m + Col::c.
struct Problem {
  struct Row {
    int64_t a, b;
    int64_t d[3];
  };
  struct Col {
    int64_t b, c;
    int64_t p[3];
  };
  ConvShape s;
  Op op;
  int64_t M, N, K, batches;
  int64_t a_m, c_m;
  const ConvShape::Place *pa, *pb, *pc;
  int64_t limit[3], divisor[3];  // of B's coordinates

  explicit Problem(const LibrarySpec& spec) : s(spec), op(spec.op) {
    const int64_t cg = s.C / s.G, og = s.O / s.G;
    const bool to_x = op == Op::ConvGradInput, to_w = op == Op::ConvGradWeight;
    M = to_x ? cg : og;
    N = to_x ? s.xs() : to_w ? cg * s.ks() : s.ys();
    K = to_x ? og * s.ks() : to_w ? s.N * s.ys() : cg * s.ks();
    batches = to_w ? s.G : s.N * s.G;
    pa = to_w ? &s.py : &s.pw;
    pb = to_x ? &s.py : &s.px;
    pc = to_x ? &s.px : to_w ? &s.pw : &s.py;
    a_m = to_x ? s.pw.channel : to_w ? s.py.channel : s.pw.outer;
    c_m = to_w ? s.pw.outer : pc->channel;
    for (int d = 0; d < 3; ++d) {
      limit[d] = to_x ? s.y[d] : s.x[d];
      divisor[d] = to_x ? s.stride[d] : 1;
    }
  }

  static void split(int64_t i, const int64_t size[3], int64_t at[3]) {
    at[2] = i % size[2];
    at[1] = i / size[2] % size[1];
    at[0] = i / (size[2] * size[1]);
  }
  static int64_t dot(const int64_t at[3], const int64_t stride[3]) {
    return at[0] * stride[0] + at[1] * stride[1] + at[2] * stride[2];
  }

  Row row(int64_t k) const {
    Row r{};
    int64_t at[3];
    if (op == Op::ConvGradWeight) {  // k: sample and position of y
      const int64_t sample = k / s.ys();
      split(k % s.ys(), s.y, at);
      r.a = sample * s.py.outer + dot(at, s.py.dim);
      r.b = sample * s.px.outer;
      for (int d = 0; d < 3; ++d) r.d[d] = at[d] * s.stride[d] - s.pad[d];
      return r;
    }
    const int64_t channel = k / s.ks();
    split(k % s.ks(), s.k, at);
    const bool to_x = op == Op::ConvGradInput;
    r.a = channel * (to_x ? s.pw.outer : s.pw.channel) + dot(at, s.pw.dim);
    r.b = channel * pb->channel;
    for (int d = 0; d < 3; ++d) r.d[d] = at[d] * s.dilation[d] * (to_x ? -1 : 1);
    return r;
  }
  Col col(int64_t n) const {
    Col c{};
    int64_t at[3];
    if (op == Op::ConvGradWeight) {  // n: channel and position in the window
      const int64_t channel = n / s.ks();
      split(n % s.ks(), s.k, at);
      c.b = channel * s.px.channel;
      c.c = channel * s.pw.channel + dot(at, s.pw.dim);
      for (int d = 0; d < 3; ++d) c.p[d] = at[d] * s.dilation[d];
      return c;
    }
    const bool to_x = op == Op::ConvGradInput;
    split(n, to_x ? s.x : s.y, at);
    c.c = dot(at, pc->dim);
    for (int d = 0; d < 3; ++d) c.p[d] = to_x ? at[d] + s.pad[d] : at[d] * s.stride[d] - s.pad[d];
    return c;
  }
  /// The offset of B's element, or -1 where it is a zero of the padding.
  int64_t b_at(const Row& r, const Col& c) const {
    int64_t at = r.b + c.b;
    for (int d = 0; d < 3; ++d) {
      int64_t i = r.d[d] + c.p[d];
      if (i < 0) return -1;
      if (divisor[d] != 1) {
        if (i % divisor[d]) return -1;
        i /= divisor[d];
      }
      if (i >= limit[d]) return -1;
      at += i * pb->dim[d];
    }
    return at;
  }
  /// First elements of A, B and C of one batch; its first channel of C.
  void offsets(int64_t batch, int64_t& a, int64_t& b, int64_t& c) const {
    const int64_t g = batch % s.G, sample = batch / s.G, cg = s.C / s.G, og = s.O / s.G;
    a = pa->offset;
    b = pb->offset;
    c = pc->offset;
    switch (op) {
      case Op::Conv:
        a += g * og * s.pw.outer;
        b += sample * s.px.outer + g * cg * s.px.channel;
        c += sample * s.py.outer + g * og * s.py.channel;
        return;
      case Op::ConvGradInput:
        a += g * og * s.pw.outer;
        b += sample * s.py.outer + g * og * s.py.channel;
        c += sample * s.px.outer + g * cg * s.px.channel;
        return;
      default:
        a += g * og * s.py.channel;
        b += g * cg * s.px.channel;
        c += g * og * s.pw.outer;
    }
  }
};

/// T: float or double.
template <class T>
class FloatConv final : public CpuExecutable {
 public:
  explicit FloatConv(const LibrarySpec& spec)
      : spec_(spec), p_(spec), g_(sizeof(T) == 8 ? gemm_f64() : gemm_f32()) {
    cols_ = std::min<int64_t>(4 * g_.nr, ceil_div(p_.N, g_.nr) * g_.nr);
    rows_ = std::min<int64_t>(24 * g_.mr, ceil_div(p_.M, g_.mr) * g_.mr);
    col_blocks_ = ceil_div(p_.N, cols_);
    row_blocks_ = ceil_div(p_.M, rows_);
  }

  void run(void* const* buffers, void*, const RunArgs&) override {
    parallel_for(p_.batches * col_blocks_ * row_blocks_, 1, [&](int64_t b, int64_t e) {
      Space space;
      space.a.resize(static_cast<size_t>(g_.kc * rows_));
      space.b.resize(static_cast<size_t>(g_.kc * cols_));
      space.c.resize(static_cast<size_t>(rows_ * cols_));
      for (int64_t t = b; t < e; ++t)
        block(buffers, t / (col_blocks_ * row_blocks_), t / row_blocks_ % col_blocks_,
              t % row_blocks_, space);
    });
  }

 private:
  struct Space {
    std::vector<T> a, b, c;
    std::vector<Problem::Row> rows;
    std::vector<Problem::Col> cols;
  };

  void block(void* const* buffers, int64_t batch, int64_t jb, int64_t ib, Space& s) const {
    int64_t a0, b0, c0;
    p_.offsets(batch, a0, b0, c0);
    const int64_t n0 = jb * cols_, n = std::min(cols_, p_.N - n0), m0 = ib * rows_,
                  m = std::min(rows_, p_.M - m0);
    s.cols.clear();
    for (int64_t j = 0; j < n; ++j) s.cols.push_back(p_.col(n0 + j));
    for (int64_t k = 0; k < p_.K; k += g_.kc) {
      const int64_t kc = std::min(g_.kc, p_.K - k);
      s.rows.clear();
      for (int64_t i = 0; i < kc; ++i) s.rows.push_back(p_.row(k + i));
      pack_b(buffers[operand(p_.pb)], b0, kc, n, s);
      pack_a(buffers[operand(p_.pa)], a0 + m0 * p_.a_m, kc, m, s);
      for (int64_t i = 0; i < m; i += g_.mr)
        g_.block({kc, 0, g_.mr, g_.nr, kc * g_.nr, cols_}, std::min<int64_t>(g_.mr, m - i), n,
                 s.a.data() + i * kc, s.b.data(), s.c.data() + i * cols_, k > 0);
    }
    deliver(buffers, c0 + m0 * p_.c_m, batch % p_.s.G * p_.M + m0, m, n, s);
  }
  int operand(const ConvShape::Place* p) const {
    return p == &p_.s.px ? p_.s.ix : p == &p_.s.pw ? p_.s.iw : p_.s.iy;
  }

  void pack_b(const void* p, int64_t base, int64_t kc, int64_t n, Space& s) const {
    const DType t = p_.pb->dtype;
    for (int64_t j0 = 0; j0 < n; j0 += g_.nr) {
      T* dst = s.b.data() + j0 * kc;
      for (int64_t k = 0; k < kc; ++k)
        for (int64_t j = 0; j < g_.nr; ++j) {
          const int64_t at = j0 + j < n ? p_.b_at(s.rows[static_cast<size_t>(k)],
                                                  s.cols[static_cast<size_t>(j0 + j)])
                                        : -1;
          dst[k * g_.nr + j] = at < 0 ? T(0) : read<T>(p, t, base + at);
        }
    }
  }
  void pack_a(const void* p, int64_t base, int64_t kc, int64_t m, Space& s) const {
    const DType t = p_.pa->dtype;
    for (int64_t i0 = 0; i0 < m; i0 += g_.mr) {
      T* dst = s.a.data() + i0 * kc;
      for (int64_t k = 0; k < kc; ++k)
        for (int64_t i = 0; i < g_.mr; ++i)
          dst[k * g_.mr + i] =
              i0 + i < m
                  ? read<T>(p, t, base + (i0 + i) * p_.a_m + s.rows[static_cast<size_t>(k)].a)
                  : T(0);
    }
  }
  void deliver(void* const* buffers, int64_t base, int64_t channel, int64_t m, int64_t n,
               Space& s) const {
    void* out = buffers[0];
    const DType t = spec_.operands[0].dtype;
    for (int64_t i = 0; i < m; ++i) {
      T add = T(0);
      if (spec_.has(Epilogue::Bias)) {
        const OperandSpec& b = spec_.operands[3];
        add = read<T>(buffers[3], b.dtype, b.offset + (channel + i) * b.stride[0]);
      }
      const T* row = s.c.data() + i * cols_;
      for (int64_t j = 0; j < n; ++j) {
        T v = row[j] + add;
        if (spec_.has(Epilogue::Relu)) v = v > T(0) || v != v ? v : T(0);
        write<T>(out, t, base + i * p_.c_m + s.cols[static_cast<size_t>(j)].c, v);
      }
    }
  }

  LibrarySpec spec_;
  Problem p_;
  const GemmOps& g_;
  int64_t cols_, rows_, col_blocks_, row_blocks_;
};

/// Integers: plain loops, sums that wrap.
class IntConv final : public CpuExecutable {
 public:
  explicit IntConv(const LibrarySpec& spec) : spec_(spec), p_(spec) {}
  void run(void* const* buffers, void*, const RunArgs&) override {
    parallel_for(p_.batches * p_.M, 1, [&](int64_t b, int64_t e) {
      for (int64_t t = b; t < e; ++t) row(buffers, t / p_.M, t % p_.M);
    });
  }

 private:
  void row(void* const* buffers, int64_t batch, int64_t m) const {
    int64_t a0, b0, c0;
    p_.offsets(batch, a0, b0, c0);
    const void *a = buffers[operand(p_.pa)], *b = buffers[operand(p_.pb)];
    std::vector<uint64_t> sum(static_cast<size_t>(p_.N), 0);
    std::vector<Problem::Col> cols;
    for (int64_t n = 0; n < p_.N; ++n) cols.push_back(p_.col(n));
    for (int64_t k = 0; k < p_.K; ++k) {
      const Problem::Row r = p_.row(k);
      const auto x = static_cast<uint64_t>(read<int64_t>(a, p_.pa->dtype, a0 + m * p_.a_m + r.a));
      for (size_t n = 0; n < sum.size(); ++n)
        if (const int64_t at = p_.b_at(r, cols[n]); at >= 0)
          sum[n] += x * static_cast<uint64_t>(read<int64_t>(b, p_.pb->dtype, b0 + at));
    }
    uint64_t add = 0;
    if (spec_.has(Epilogue::Bias)) {
      const OperandSpec& o = spec_.operands[3];
      add = static_cast<uint64_t>(
          read<int64_t>(buffers[3], o.dtype, o.offset + (batch % p_.s.G * p_.M + m) * o.stride[0]));
    }
    for (size_t n = 0; n < sum.size(); ++n) {
      auto v = static_cast<int64_t>(sum[n] + add);
      if (spec_.has(Epilogue::Relu)) v = std::max<int64_t>(v, 0);
      write<int64_t>(buffers[0], p_.pc->dtype, c0 + m * p_.c_m + cols[n].c, v);
    }
  }
  int operand(const ConvShape::Place* p) const {
    return p == &p_.s.px ? p_.s.ix : p == &p_.s.pw ? p_.s.iw : p_.s.iy;
  }
  LibrarySpec spec_;
  Problem p_;
};

}  // namespace

std::unique_ptr<CpuExecutable> prepare_conv(const LibrarySpec& spec, const char*&) {
  const DType t = spec.operands[0].dtype;
  if (t == DType::Float64) return std::make_unique<FloatConv<double>>(spec);
  if (is_float(t)) return std::make_unique<FloatConv<float>>(spec);
  return std::make_unique<IntConv>(spec);
}

}  // namespace ingot::cpu
