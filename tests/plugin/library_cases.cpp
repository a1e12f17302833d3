// See library_cases.h.
#include "plugin/library_cases.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "spec_interpreter.h"

namespace ingot::test {
namespace {

int64_t pick(std::mt19937& gen, int64_t lo, int64_t hi) {
  return lo + static_cast<int64_t>(gen() % static_cast<uint64_t>(hi - lo + 1));
}

/// Strides of a tensor whose axes lie in this order in memory, the last fastest, with gaps.
Dims strides_in_order(const Dims& shape, const std::vector<int>& order, std::mt19937& gen) {
  Dims s = Dims::filled(shape.size(), 0);
  int64_t step = 1;
  for (size_t k = order.size(); k-- > 0;) {
    s[order[k]] = step;
    step = step * shape[order[k]] + (gen() % 4 == 0 ? pick(gen, 1, 5) : 0);
  }
  return s;
}

OperandSpec operand(DType t, const Dims& shape, std::mt19937& gen, bool shuffle) {
  OperandSpec o;
  o.dtype = t;
  o.shape = shape;
  std::vector<int> order(static_cast<size_t>(shape.size()));
  for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int>(i);
  if (shuffle) std::shuffle(order.begin(), order.end(), gen);
  o.stride = strides_in_order(shape, order, gen);
  o.offset = gen() % 3 == 0 ? pick(gen, 0, 9) : 0;
  return o;
}

int64_t span(const OperandSpec& o) {
  int64_t last = o.offset;
  for (int d = 0; d < o.shape.size(); ++d) last += (o.shape[d] - 1) * o.stride[d];
  return last + 1;
}

void for_each(const Dims& shape, const std::function<void(const Dims&)>& f) {
  Dims at = Dims::filled(shape.size(), 0);
  for (int64_t n = shape.numel(); n > 0; --n) {
    f(at);
    for (int d = shape.size() - 1; d >= 0; --d) {
      if (++at[d] < shape[d]) break;
      at[d] = 0;
    }
  }
}

int64_t place(const OperandSpec& o, const Dims& at) {
  int64_t p = o.offset;
  for (int d = 0; d < at.size(); ++d) p += at[d] * o.stride[d];
  return p;
}

double value(const OperandSpec& o, void* p, int64_t i) {
  Element e = read_element(o.dtype, p, i);
  return is_float(o.dtype) ? e.f : static_cast<double>(e.i);
}

double gelu(double x) { return 0.5 * x * (1 + std::tanh(0.7978845608028654 * (x + 0.044715 * x * x * x))); }
double gelu_slope(double x) {
  const double h = 1e-4;
  return (gelu(x - 2 * h) - 8 * gelu(x - h) + 8 * gelu(x + h) - gelu(x + 2 * h)) / (12 * h);
}

void matmul_reference(const LibrarySpec& spec, CallMemory& m) {
  const auto& o = spec.operands;
  const size_t ia = static_cast<size_t>(spec.written), ib = ia + 1, more = ia + 2;
  int r = o[0].shape.size();
  int64_t n = 0;  // elements so far, in row-major order
  for_each(o[0].shape, [&](const Dims& at) {
    double sum = 0;
    Dims a = at, b = at;
    for (int64_t k = 0; k < o[ia].shape[r - 1]; ++k) {
      a[r - 1] = k;
      b[r - 2] = k;
      sum += value(o[ia], m.at(ia), place(o[ia], a)) * value(o[ib], m.at(ib), place(o[ib], b));
    }
    int64_t p = place(o[0], at);
    if (spec.accumulate) sum += value(o[0], m.at(0), p);
    if (spec.bias) sum += value(o[more], m.at(more), o[more].offset + at[r - 1] * o[more].stride[0]);
    if (spec.epilogue == Epilogue::Relu) sum = std::max(sum, 0.0);
    if (spec.epilogue == Epilogue::GeluErf) sum = 0.5 * sum * (1 + std::erf(sum * std::sqrt(0.5)));
    if (spec.epilogue == Epilogue::GeluTanhGrad)
      sum *= gelu_slope(value(o[more], m.at(more), o[more].offset + n));
    if (spec.epilogue == Epilogue::BiasGrad && at[r - 1] == 0) {
      double all = 0;
      for (int64_t k = 0; k < o[ia].shape[r - 1]; ++k) {
        a[r - 1] = k;
        all += value(o[ia], m.at(ia), place(o[ia], a));
      }
      write_element(o[1].dtype, m.at(1), o[1].offset + at[r - 2], {all, 0});
    }
    if (spec.epilogue == Epilogue::GeluTanh) {
      if (spec.written == 2) write_element(o[1].dtype, m.at(1), o[1].offset + n, {gelu(sum), 0});
      if (spec.written == 1) sum = gelu(sum);
    }
    write_element(o[0].dtype, m.at(0), p, {sum, static_cast<int64_t>(sum)});
    ++n;
  });
}

void scatter_reference(const LibrarySpec& spec, CallMemory& m) {
  const auto& o = spec.operands;
  auto axis = static_cast<int>(spec.attr[0]);
  std::vector<double> sums(static_cast<size_t>(span(o[0])), 0.0);
  for_each(o[2].shape, [&](const Dims& at) {
    int64_t i = read_element(o[1].dtype, m.at(1), place(o[1], at)).i;
    if (i < 0) i += o[0].shape[axis];
    Dims to = at;
    to[axis] = i;
    sums[static_cast<size_t>(place(o[0], to))] += value(o[2], m.at(2), place(o[2], at));
  });
  for (size_t i = 0; i < sums.size(); ++i)
    write_element(o[0].dtype, m.at(0), static_cast<int64_t>(i), {sums[i], static_cast<int64_t>(sums[i])});
}

}  // namespace

CallMemory::CallMemory(const LibrarySpec& spec, uint32_t seed, int64_t extent) {
  std::mt19937 gen(seed);
  for (size_t i = 0; i < spec.operands.size(); ++i) {
    const OperandSpec& o = spec.operands[i];
    int64_t n = span(o);
    bytes.push_back(static_cast<size_t>(n) * size_of(o.dtype));
    blocks.emplace_back(bytes.back() / 8 + 2, 0);
    for (int64_t k = 0; k < n; ++k) {
      auto whole = static_cast<int64_t>(gen() % 7) - (o.dtype == DType::UInt8 ? 0 : 3);
      if (extent && i + 2 == spec.operands.size())
        whole = static_cast<int64_t>(gen() % static_cast<uint64_t>(2 * extent)) - extent;
      double f = static_cast<double>(gen() % 2001) / 1000 - 1;
      static const double odd[] = {HUGE_VAL - HUGE_VAL, HUGE_VAL, -HUGE_VAL, 0.0, -0.0};
      if (spec.op == LibOp::Sort && gen() % 16 == 0) f = odd[gen() % 5];
      write_element(o.dtype, at(i), k, {f, whole});
    }
  }
}

LibrarySpec random_matmul(std::mt19937& gen, bool library_types) {
  static const DType all[] = {float64, float32, float16, bfloat16, int64, int32, int16, int8, uint8};
  LibrarySpec s;
  s.op = LibOp::Matmul;
  s.steady = gen() % 8;
  DType t = all[gen() % (library_types ? 4 : 9)], out = is_half(t) && gen() % 4 == 0 ? float32 : t;
  int64_t M = pick(gen, 1, 33), N = pick(gen, 1, 33), K = pick(gen, 1, gen() % 6 ? 33 : 1400);
  Dims a, b, o;
  for (int64_t d = pick(gen, 0, 3); d > 0; --d) {
    int64_t n = pick(gen, 1, 3);
    a.push_back(n), b.push_back(n), o.push_back(n);
  }
  a.push_back(M), a.push_back(K), b.push_back(K), b.push_back(N), o.push_back(M), o.push_back(N);
  bool shuffle = gen() % 2;
  s.operands = {operand(out, o, gen, gen() % 8 == 0), operand(t, a, gen, shuffle),
                operand(t, b, gen, shuffle)};
  if (gen() % 3 == 0)  // one b for the whole batch
    for (int d = 0; d < b.size() - 2; ++d) s.operands[2].stride[d] = 0;
  s.accumulate = gen() % 5 == 0;
  if (is_float(t) && gen() % 3 == 0) {
    s.bias = true;
    s.operands.push_back(operand(out, Dims{N}, gen, false));
    s.operands[3].stride = Dims{1};
  }
  if (is_float(t)) s.epilogue = static_cast<Epilogue>(gen() % 3);
  return s;
}

LibrarySpec random_gelu_matmul(std::mt19937& gen) {
  LibrarySpec s;
  s.op = LibOp::Matmul;
  const DType t = gen() % 2 ? bfloat16 : float16;
  const int64_t unit = gen() % 2 ? 8 : 1;  // the library wants multiples of 16 bytes
  const int64_t M = unit * pick(gen, 1, 9), N = unit * pick(gen, 1, 9), K = unit * pick(gen, 1, 9);
  const bool gradient = gen() % 2;
  s.epilogue = gradient ? Epilogue::GeluTanhGrad : Epilogue::GeluTanh;
  auto whole = [&](const Dims& shape) { return OperandSpec{t, shape, row_major(shape), 0}; };
  s.operands = {whole({M, N})};
  if (!gradient) s.operands.push_back(whole({1, M, N}));
  s.written = static_cast<int>(s.operands.size());
  s.operands.push_back(whole({M, K}));
  OperandSpec b = whole({N, K});  // a weight as it lies, or transposed
  if (gen() % 2)
    b = whole({K, N});
  else
    b = {t, {K, N}, {1, K}, 0};
  s.operands.push_back(b);
  if (gradient) s.operands.push_back(whole({M, N}));
  if (!gradient && gen() % 3) {
    s.bias = true;
    s.operands.push_back({t, {N}, {1}, 0});
  }
  return s;
}

LibrarySpec random_bias_gradient(std::mt19937& gen) {
  LibrarySpec s;
  s.op = LibOp::Matmul;
  s.epilogue = Epilogue::BiasGrad;
  s.written = 2;
  const DType t = gen() % 2 ? bfloat16 : float16;
  const int64_t unit = gen() % 2 ? 8 : 1;
  const int64_t M = unit * pick(gen, 1, 9), N = unit * pick(gen, 1, 9), K = unit * pick(gen, 1, 30);
  s.operands = {
      {t, {M, N}, {N, 1}, 0}, {t, {1, M}, {M, 1}, 0}, {t, {M, K}, {1, M}, 0}, {t, {K, N}, {N, 1}, 0}};
  if (gen() % 4 == 0) s.operands[0].stride = {1, M};  // written by columns
  return s;
}

LibrarySpec random_row_matmul(std::mt19937& gen) {
  static const DType all[] = {bfloat16, float16, float32};
  static const int64_t depths[] = {8, 64, 264, 768, 1600, 4104};
  LibrarySpec s;
  s.op = LibOp::Matmul;
  s.steady = gen() % 2 ? 4 : 0;
  const DType t = all[gen() % 3], out = gen() % 3 == 0 ? float32 : t;
  const int64_t M = gen() % 2 ? 1 : pick(gen, 1, 9), K = depths[gen() % 6], pitch = K + 8 * pick(gen, 0, 2);
  const int64_t N = K < 100 && gen() % 4 == 0 ? 8500 : pick(gen, 1, 70);
  auto shape = [&](int64_t a, int64_t b) { return s.attr[3] ? Dims{1, a, b} : Dims{a, b}; };
  s.attr[3] = gen() % 2;  // with a batch dim of one
  OperandSpec o{out, shape(M, N), row_major(shape(M, N)), pick(gen, 0, 3)};
  OperandSpec a{t, shape(M, K), row_major(shape(M, K)), 8 * pick(gen, 0, 2)};
  OperandSpec b{t, shape(K, N), row_major(shape(K, N)), 8 * pick(gen, 0, 2)};
  const int rank = a.shape.size();
  a.stride[rank - 2] = pitch;
  b.stride[rank - 2] = 1, b.stride[rank - 1] = pitch + (gen() % 8 == 0);  // rarely not aligned
  if (rank == 3) a.stride[0] = pitch * M, b.stride[0] = gen() % 2 ? 0 : pitch * N;
  s.attr[3] = 0;
  s.operands = {o, a, b};
  s.accumulate = gen() % 5 == 0;
  if (gen() % 2) {
    s.bias = true;
    s.operands.push_back({gen() % 2 ? out : t, Dims{N}, Dims{1}, pick(gen, 0, 3)});
  }
  s.epilogue = static_cast<Epilogue>(gen() % 4);
  return s;
}

LibrarySpec random_row_attention(std::mt19937& gen) {
  static const DType all[] = {bfloat16, float16, float32};
  static const int64_t lengths[] = {1, 7, 130, 700};
  LibrarySpec s;
  s.op = LibOp::Attention;
  const DType t = all[gen() % 3];
  const int64_t B = pick(gen, 1, 2), H = pick(gen, 1, 3), S = lengths[gen() % 4],
                D = int64_t{16} << gen() % 4;
  s.written = gen() % 2 ? 2 : 1;
  s.scale = 1 / std::sqrt(static_cast<double>(D));
  auto dense = [&](const Dims& shape,
                   bool split) {  // split: heads are parts of a row, as a projection gives them
    OperandSpec o{t, shape, row_major(shape), split ? 8 * pick(gen, 0, 3) : 0};
    if (split) o.stride = Dims{shape[1] * shape[2] * shape[3], shape[3], shape[1] * shape[3], 1};
    return o;
  };
  s.operands.push_back(dense({B, H, 1, D}, gen() % 2));
  if (s.written == 2) s.operands.push_back({float32, Dims{B, H, 1}, row_major(Dims{B, H, 1}), 0});
  s.operands.push_back(dense({B, H, 1, D}, gen() % 2));
  for (int i = 0; i < 2; ++i)
    s.operands.push_back(gen() % 3 ? dense({B, H, S, D}, gen() % 2) : operand(t, {B, H, S, D}, gen, true));
  const bool more = gen() % 3 == 0;  // one key and value that are not among the others
  if (more || gen() % 3) s.operands.push_back(dense({gen() % 2 ? 1 : B, gen() % 2 ? 1 : H, 1, S}, false));
  s.attr[0] = more ? 2 : 0;
  for (int i = 0; more && i < 2; ++i) s.operands.push_back(dense({B, H, 1, D}, gen() % 2));
  return s;
}

void attention_reference(const LibrarySpec& spec, CallMemory& m) {
  const auto& o = spec.operands;
  const size_t q = static_cast<size_t>(spec.written);
  const int64_t S = o[q + 1].shape[2], D = o[q].shape[3];
  auto read = [&](size_t i, const Dims& at) { return value(o[i], m.at(i), place(o[i], at)); };
  for (int64_t b = 0; b < o[0].shape[0]; ++b)
    for (int64_t h = 0; h < o[0].shape[1]; ++h) {
      std::vector<double> w(static_cast<size_t>(S)), out(static_cast<size_t>(D), 0.0);
      double most = -HUGE_VAL, sum = 0;
      for (int64_t s = 0; s < S; ++s) {
        double dot = 0;
        for (int64_t d = 0; d < D; ++d) dot += read(q, {b, h, 0, d}) * read(q + 1, {b, h, s, d});
        dot *= spec.scale;
        if (o.size() > q + 3) {
          const Dims& shape = o[q + 3].shape;
          dot += read(q + 3, {shape[0] == 1 ? 0 : b, shape[1] == 1 ? 0 : h, 0, s});
        }
        w[static_cast<size_t>(s)] = dot;
        most = std::max(most, dot);
      }
      const bool more = spec.attr[0] == 2;
      double last = 0;
      for (int64_t d = 0; more && d < D; ++d)
        last += read(q, {b, h, 0, d}) * read(q + 4, {b, h, 0, d}) * spec.scale;
      if (more) most = std::max(most, last);
      for (double& x : w) sum += x = std::exp(x - most);
      for (int64_t s = 0; s < S; ++s)
        for (int64_t d = 0; d < D; ++d)
          out[static_cast<size_t>(d)] += w[static_cast<size_t>(s)] * read(q + 2, {b, h, s, d});
      if (more) sum += last = std::exp(last - most);
      for (int64_t d = 0; more && d < D; ++d) out[static_cast<size_t>(d)] += last * read(q + 5, {b, h, 0, d});
      for (int64_t d = 0; d < D; ++d)
        write_element(o[0].dtype, m.at(0), place(o[0], {b, h, 0, d}), {out[static_cast<size_t>(d)] / sum, 0});
      if (spec.written == 2)
        write_element(float32, m.at(1), place(o[1], {b, h, 0}), {most + std::log(sum), 0});
    }
}

LibrarySpec random_short_attention(std::mt19937& gen, int64_t longest) {
  LibrarySpec s;
  s.op = LibOp::AttentionGrad;
  s.written = 3;
  s.attr[0] = gen() % 2;
  const DType t = gen() % 2 ? bfloat16 : float16;
  const int64_t B = pick(gen, 1, 2), H = pick(gen, 1, 2), T = 32 * pick(gen, 1, longest / 32), D = 64;
  s.scale = 1 / std::sqrt(static_cast<double>(D));
  const Dims shape{B, H, T, D};
  const bool joined = gen() % 2;  // gradients of q, k and v side by side in rows
  for (int64_t i = 0; i < 8; ++i) {
    const int64_t row = (joined && i < 3) || gen() % 2 ? 3 * H * D : H * D;
    if (gen() % 2 || (joined && i < 3))
      s.operands.push_back({t, shape, Dims{T * row, D, row, 1}, row == 3 * H * D ? i % 3 * H * D : 8});
    else
      s.operands.push_back({t, shape, row_major(shape), 0});
  }
  s.operands.push_back({float32, Dims{B, H, T}, row_major(Dims{B, H, T}), pick(gen, 0, 2)});
  return s;
}

namespace {

/// One head's scores, after softmax where `lse` says how much to take off.
struct Head {
  const LibrarySpec& spec;
  CallMemory& m;
  int64_t b, h, T = spec.operands[3].shape[2], D = spec.operands[3].shape[3];
  double read(size_t i, int64_t t, int64_t d) const {
    return value(spec.operands[i], m.at(i), place(spec.operands[i], {b, h, t, d}));
  }
  double dot(size_t x, int64_t tx, size_t y, int64_t ty) const {
    double sum = 0;
    for (int64_t d = 0; d < D; ++d) sum += read(x, tx, d) * read(y, ty, d);
    return sum;
  }
  int64_t keys(int64_t query) const { return spec.attr[0] ? query + 1 : T; }
};

void for_each_head(const LibrarySpec& spec, CallMemory& m, const std::function<void(const Head&)>& f) {
  for (int64_t b = 0; b < spec.operands[3].shape[0]; ++b)
    for (int64_t h = 0; h < spec.operands[3].shape[1]; ++h) f(Head{spec, m, b, h});
}

}  // namespace

void short_attention(const LibrarySpec& spec, CallMemory& m) {
  const auto& o = spec.operands;
  for_each_head(spec, m, [&](const Head& head) {
    for (int64_t q = 0; q < head.T; ++q) {
      std::vector<double> w(static_cast<size_t>(head.keys(q)));
      double sum = 0;
      for (int64_t k = 0; k < head.keys(q); ++k)
        sum += w[static_cast<size_t>(k)] = std::exp(spec.scale * head.dot(3, q, 4, k));
      for (int64_t d = 0; d < head.D; ++d) {
        double y = 0;
        for (int64_t k = 0; k < head.keys(q); ++k) y += w[static_cast<size_t>(k)] / sum * head.read(5, k, d);
        write_element(o[6].dtype, m.at(6), place(o[6], {head.b, head.h, q, d}), {y, 0});
      }
      write_element(float32, m.at(8), place(o[8], {head.b, head.h, q}), {std::log(sum), 0});
    }
  });
}

void short_attention_reference(const LibrarySpec& spec, CallMemory& m) {
  const auto& o = spec.operands;
  for_each_head(spec, m, [&](const Head& head) {
    const size_t n = static_cast<size_t>(head.T * head.D);
    std::vector<double> dq(n), dk(n), dv(n);
    for (int64_t q = 0; q < head.T; ++q) {
      const double mean = head.dot(7, q, 6, q), lse = value(o[8], m.at(8), place(o[8], {head.b, head.h, q}));
      for (int64_t k = 0; k < head.keys(q); ++k) {
        const double w = std::exp(spec.scale * head.dot(3, q, 4, k) - lse);
        const double ds = w * (head.dot(7, q, 5, k) - mean) * spec.scale;
        for (int64_t d = 0; d < head.D; ++d) {
          const auto at_q = static_cast<size_t>(q * head.D + d), at_k = static_cast<size_t>(k * head.D + d);
          dq[at_q] += ds * head.read(4, k, d);
          dk[at_k] += ds * head.read(3, q, d);
          dv[at_k] += w * head.read(7, q, d);
        }
      }
    }
    for (int64_t t = 0; t < head.T; ++t)
      for (int64_t d = 0; d < head.D; ++d) {
        const auto at = static_cast<size_t>(t * head.D + d);
        const double results[] = {dq[at], dk[at], dv[at]};
        for (size_t i = 0; i < 3; ++i)
          write_element(o[i].dtype, m.at(i), place(o[i], {head.b, head.h, t, d}), {results[i], 0});
      }
  });
}

double distance(const LibrarySpec& spec, size_t i, CallMemory& got, CallMemory& want) {
  const OperandSpec& o = spec.operands[i];
  double off = 0, norm = 0;
  for_each(o.shape, [&](const Dims& at) {
    const double x = value(o, got.at(i), place(o, at)), y = value(o, want.at(i), place(o, at));
    off += x == x ? (x - y) * (x - y) : HUGE_VAL;
    norm += y * y;
  });
  return std::sqrt(off / std::max(norm, 1e-30));
}

LibrarySpec random_scatter(std::mt19937& gen, bool rows) {
  static const DType all[] = {float64, float32, float16, bfloat16, int64, int32, int16, int8, uint8};
  LibrarySpec s;
  s.op = LibOp::ScatterAdd;
  s.site = 7;
  DType t = all[gen() % 9];
  int rank = static_cast<int>(pick(gen, 1, 4)), axis = static_cast<int>(pick(gen, 0, rank - 1));
  Dims shape, out;
  for (int d = 0; d < rank; ++d) {
    int64_t n = pick(gen, 1, 6), v = n;
    if (d == axis)
      n = rows ? pick(gen, 33, 900) : pick(gen, 1, 40),
      v = gen() % 3 ? pick(gen, 1, 20) : pick(gen, 200, 1000);
    shape.push_back(n);
    out.push_back(v);
  }
  s.attr[0] = axis;
  s.operands = {operand(t, out, gen, false), operand(gen() % 2 ? int64 : int32, shape, gen, false),
                operand(t, shape, gen, gen() % 2)};
  s.operands[0].stride = row_major(out);
  s.operands[0].offset = 0;
  if (rows) {
    s.operands[1].stride = Dims::filled(rank, 0);
    s.operands[1].stride[axis] = pick(gen, 1, 2);
  }
  return s;
}

LibrarySpec random_write(std::mt19937& gen, bool rows, bool singles) {
  static const DType all[] = {float64, float32, float16, bfloat16, int64, int32, int16, int8, uint8, bool_};
  LibrarySpec s = random_scatter(gen, rows);
  s.op = LibOp::Scatter;
  if (singles) {
    s = LibrarySpec();
    s.op = LibOp::Scatter;
    s.site = 7;
    s.attr[0] = gen() % 2;
    Dims index = s.attr[0] ? Dims{3, pick(gen, 128, 700)} : Dims{pick(gen, 128, 700), 3}, out = index;
    out[static_cast<int>(s.attr[0])] = pick(gen, 2, 400);
    s.operands = {operand(float32, out, gen, false),
                  operand(gen() % 2 ? int64 : int32, index, gen, gen() % 2),
                  operand(float32, index, gen, gen() % 2)};
    s.operands[0].stride = row_major(out);
    s.operands[0].offset = 0;
  }
  DType t = all[gen() % 10];
  s.attr[1] = static_cast<int64_t>(gen() % 4);
  if (t == bool_ && s.attr[1] == static_cast<int64_t>(ScatterMode::Prod)) s.attr[1] = 0;
  s.operands[0].dtype = s.operands[2].dtype = t;
  s.operands.insert(s.operands.begin() + 1, operand(t, s.operands[0].shape, gen, gen() % 2));
  return s;
}

namespace {

// One operand to read, and a result of its shape.
void one_operand(LibrarySpec& s, DType t, DType result, int64_t longest, std::mt19937& gen) {
  int rank = static_cast<int>(pick(gen, 1, 4)), axis = static_cast<int>(pick(gen, 0, rank - 1));
  Dims shape;
  for (int d = 0; d < rank; ++d)
    shape.push_back(d == axis ? pick(gen, 1, longest) : pick(gen, 1, longest > 1000 ? 2 : 7));
  s.attr[0] = axis;
  s.operands = {operand(result, shape, gen, false), operand(t, shape, gen, gen() % 2)};
  s.operands[0].stride = row_major(shape);
  s.operands[0].offset = 0;
}

}  // namespace

LibrarySpec random_scan(std::mt19937& gen, int64_t longest) {
  static const DType all[] = {float64, float32, float16, bfloat16, int64, int32, int16, int8, uint8};
  LibrarySpec s;
  s.op = LibOp::Scan;
  auto kind = static_cast<ScanKind>(gen() % 5);
  DType t = all[gen() % (kind == ScanKind::LogSum ? 4 : 9)];
  s.attr[1] = static_cast<int64_t>(kind);
  one_operand(s, t, kind >= ScanKind::ArgMax ? int64 : t, longest, gen);
  return s;
}

LibrarySpec random_sort(std::mt19937& gen, int64_t longest) {
  static const DType all[] = {float64, float32, float16, bfloat16, int64, int32, int16, int8, uint8, bool_};
  LibrarySpec s;
  s.op = LibOp::Sort;
  s.attr[1] = gen() % 2;
  one_operand(s, all[gen() % 10], int64, longest, gen);
  if (gen() % 3 == 0) {
    auto axis = static_cast<int>(s.attr[0]);
    s.operands[0].shape[axis] = pick(gen, 1, s.operands[0].shape[axis]);
    s.operands[0].stride = row_major(s.operands[0].shape);
  }
  return s;
}

int64_t index_extent(const LibrarySpec& s) {
  return s.op == LibOp::ScatterAdd || s.op == LibOp::Scatter
             ? s.operands[0].shape[static_cast<int>(s.attr[0])]
             : 0;
}

namespace {

void write_reference(const LibrarySpec& spec, CallMemory& m) {
  const auto& o = spec.operands;
  auto axis = static_cast<int>(spec.attr[0]);
  auto mode = static_cast<ScatterMode>(spec.attr[1]);
  std::vector<double> out(static_cast<size_t>(span(o[0])), 0.0);
  for_each(o[0].shape, [&](const Dims& at) {
    out[static_cast<size_t>(place(o[0], at))] = value(o[1], m.at(1), place(o[1], at));
  });
  for_each(o[3].shape, [&](const Dims& at) {
    Dims to = at;
    int64_t i = read_element(o[2].dtype, m.at(2), place(o[2], at)).i;
    to[axis] = i < 0 ? i + o[0].shape[axis] : i;
    double& x = out[static_cast<size_t>(place(o[0], to))];
    double v = value(o[3], m.at(3), place(o[3], at));
    x = mode == ScatterMode::Set    ? v
        : mode == ScatterMode::Prod ? x * v
        : mode == ScatterMode::Max  ? std::max(x, v)
                                    : std::min(x, v);
    if (!is_float(o[0].dtype)) {  // wraps around at every step, as the device does
      write_element(o[0].dtype, m.at(0), 0, {0, static_cast<int64_t>(x)});
      x = static_cast<double>(read_element(o[0].dtype, m.at(0), 0).i);
    }
  });
  for (size_t i = 0; i < out.size(); ++i)
    write_element(o[0].dtype, m.at(0), static_cast<int64_t>(i), {out[i], static_cast<int64_t>(out[i])});
}

void scan_reference(const LibrarySpec& spec, CallMemory& m) {
  const auto& o = spec.operands;
  auto axis = static_cast<int>(spec.attr[0]);
  auto kind = static_cast<ScanKind>(spec.attr[1]);
  Dims lines = o[1].shape;
  lines[axis] = 1;
  for_each(lines, [&](Dims at) {
    double f = kind == ScanKind::Prod ? 1 : kind == ScanKind::LogSum ? -HUGE_VAL : 0, best = 0;
    int64_t i = kind == ScanKind::Prod, found = -1;
    for (int64_t k = 0; k < o[1].shape[axis]; ++k) {
      at[axis] = k;
      Element e = read_element(o[1].dtype, m.at(1), place(o[1], at));
      double x = is_float(o[1].dtype) ? e.f : static_cast<double>(e.i);
      bool wins = kind == ScanKind::ArgMax ? x >= best : x <= best;
      if (kind == ScanKind::Sum) f += x, i += e.i;
      if (kind == ScanKind::Prod)
        f *= x, i = static_cast<int64_t>(static_cast<uint64_t>(i) * static_cast<uint64_t>(e.i));
      if (kind == ScanKind::LogSum)
        f = std::max(f, x) + std::log1p(std::exp(std::min(f, x) - std::max(f, x)));
      if (found < 0 || std::isnan(x) || (!std::isnan(best) && wins)) best = x, found = k;
      write_element(o[0].dtype, m.at(0), place(o[0], at), {f, kind >= ScanKind::ArgMax ? found : i});
    }
  });
}

void sort_reference(const LibrarySpec& spec, CallMemory& m) {
  const auto& o = spec.operands;
  auto axis = static_cast<int>(spec.attr[0]);
  Dims lines = o[1].shape;
  lines[axis] = 1;
  for_each(lines, [&](Dims at) {
    std::vector<std::pair<double, int64_t>> all;
    for (int64_t k = 0; k < o[1].shape[axis]; ++k) {
      at[axis] = k;
      all.push_back({value(o[1], m.at(1), place(o[1], at)), k});
    }
    std::stable_sort(all.begin(), all.end(), [&](const auto& a, const auto& b) {
      if (std::isnan(a.first) || std::isnan(b.first))
        return spec.attr[1] ? std::isnan(a.first) && !std::isnan(b.first)
                            : !std::isnan(a.first) && std::isnan(b.first);
      return spec.attr[1] ? a.first > b.first : a.first < b.first;
    });
    for (int64_t k = 0; k < o[0].shape[axis]; ++k) {
      at[axis] = k;
      write_element(o[0].dtype, m.at(0), place(o[0], at), {0, all[static_cast<size_t>(k)].second});
    }
  });
}

}  // namespace

void reference(const LibrarySpec& spec, CallMemory& m) {
  switch (spec.op) {
    case LibOp::Matmul:
      return matmul_reference(spec, m);
    case LibOp::Scatter:
      return write_reference(spec, m);
    case LibOp::Scan:
      return scan_reference(spec, m);
    case LibOp::Sort:
      return sort_reference(spec, m);
    default:
      return scatter_reference(spec, m);
  }
}

std::string difference(const LibrarySpec& spec, CallMemory& got, CallMemory& want) {
  for (size_t k = 0; k < static_cast<size_t>(spec.written); ++k) {
    const OperandSpec& o = spec.operands[k];
    double eps = o.dtype == bfloat16 ? 1.6e-2 : o.dtype == float16 ? 2e-3 : o.dtype == float32 ? 1e-5 : 1e-12;
    for (int64_t i = 0, n = span(o); i < n; ++i) {
      Element g = read_element(o.dtype, got.at(k), i), w = read_element(o.dtype, want.at(k), i);
      bool same = is_float(o.dtype) ? std::fabs(g.f - w.f) <= eps * (4 + std::fabs(w.f)) : g.i == w.i;
      if (!same)
        return "element " + std::to_string(i) + " of " + std::to_string(n) + " of operand " +
               std::to_string(k) + ": got " +
               std::to_string(is_float(o.dtype) ? g.f : static_cast<double>(g.i)) + ", want " +
               std::to_string(is_float(o.dtype) ? w.f : static_cast<double>(w.i));
    }
  }
  return {};
}

}  // namespace ingot::test
