// Random attention calls and what they must give: of one query per head, and gradients over short
// sequences.
#include <cmath>

#include "plugin/case_parts.h"
#include "plugin/library_cases.h"

namespace ingot::test {

LibrarySpec random_row_attention(std::mt19937& gen) {
  static const DType all[] = {bfloat16, float16, float32};
  static const int64_t lengths[] = {1, 7, 130, 700};
  LibrarySpec s;
  s.op = Op::Attention;
  AttentionAttrs attrs;
  const DType t = all[gen() % 3];
  const int64_t B = pick(gen, 1, 2), H = pick(gen, 1, 3), S = lengths[gen() % 4],
                D = int64_t{16} << gen() % 4;
  s.written = gen() % 2 ? 2 : 1;
  attrs.scale = 1 / std::sqrt(static_cast<double>(D));
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
    s.operands.push_back(gen() % 3 ? dense({B, H, S, D}, gen() % 2)
                                   : operand(t, {B, H, S, D}, gen, true));
  const bool more = gen() % 3 == 0;  // one key and value that are not among the others
  if (more || gen() % 3)
    s.operands.push_back(dense({gen() % 2 ? 1 : B, gen() % 2 ? 1 : H, 1, S}, false));
  if (more) attrs.mask = AttentionMask::Newest;
  s.attrs = attrs;
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
        dot *= spec.attrs.as<AttentionAttrs>().scale;
        if (o.size() > q + 3) {
          const Dims& shape = o[q + 3].shape;
          dot += read(q + 3, {shape[0] == 1 ? 0 : b, shape[1] == 1 ? 0 : h, 0, s});
        }
        w[static_cast<size_t>(s)] = dot;
        most = std::max(most, dot);
      }
      const bool more = spec.attrs.as<AttentionAttrs>().newest();
      double last = 0;
      for (int64_t d = 0; more && d < D; ++d)
        last += read(q, {b, h, 0, d}) * read(q + 4, {b, h, 0, d}) *
                spec.attrs.as<AttentionAttrs>().scale;
      if (more) most = std::max(most, last);
      for (double& x : w) sum += x = std::exp(x - most);
      for (int64_t s = 0; s < S; ++s)
        for (int64_t d = 0; d < D; ++d)
          out[static_cast<size_t>(d)] += w[static_cast<size_t>(s)] * read(q + 2, {b, h, s, d});
      if (more) sum += last = std::exp(last - most);
      for (int64_t d = 0; more && d < D; ++d)
        out[static_cast<size_t>(d)] += last * read(q + 5, {b, h, 0, d});
      for (int64_t d = 0; d < D; ++d)
        write_element(o[0].dtype, m.at(0), place(o[0], {b, h, 0, d}),
                      {out[static_cast<size_t>(d)] / sum, 0});
      if (spec.written == 2)
        write_element(float32, m.at(1), place(o[1], {b, h, 0}), {most + std::log(sum), 0});
    }
}

LibrarySpec random_short_attention(std::mt19937& gen, int64_t longest) {
  LibrarySpec s;
  s.op = Op::AttentionGrad;
  s.written = 3;
  AttentionAttrs attrs;
  if (gen() % 2) attrs.mask = AttentionMask::Causal;
  const DType t = gen() % 2 ? bfloat16 : float16;
  const int64_t B = pick(gen, 1, 2), H = pick(gen, 1, 2), T = 32 * pick(gen, 1, longest / 32),
                D = 64;
  attrs.scale = 1 / std::sqrt(static_cast<double>(D));
  s.attrs = attrs;
  const Dims shape{B, H, T, D};
  const bool joined = gen() % 2;  // gradients of q, k and v side by side in rows
  for (int64_t i = 0; i < 8; ++i) {
    const int64_t row = (joined && i < 3) || gen() % 2 ? 3 * H * D : H * D;
    if (gen() % 2 || (joined && i < 3))
      s.operands.push_back(
          {t, shape, Dims{T * row, D, row, 1}, row == 3 * H * D ? i % 3 * H * D : 8});
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
  int64_t keys(int64_t query) const {
    return spec.attrs.as<AttentionAttrs>().causal() ? query + 1 : T;
  }
};

void for_each_head(const LibrarySpec& spec, CallMemory& m,
                   const std::function<void(const Head&)>& f) {
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
        sum += w[static_cast<size_t>(k)] =
            std::exp(spec.attrs.as<AttentionAttrs>().scale * head.dot(3, q, 4, k));
      for (int64_t d = 0; d < head.D; ++d) {
        double y = 0;
        for (int64_t k = 0; k < head.keys(q); ++k)
          y += w[static_cast<size_t>(k)] / sum * head.read(5, k, d);
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
      const double mean = head.dot(7, q, 6, q),
                   lse = value(o[8], m.at(8), place(o[8], {head.b, head.h, q}));
      for (int64_t k = 0; k < head.keys(q); ++k) {
        const double w =
            std::exp(spec.attrs.as<AttentionAttrs>().scale * head.dot(3, q, 4, k) - lse);
        const double ds = w * (head.dot(7, q, 5, k) - mean) * spec.attrs.as<AttentionAttrs>().scale;
        for (int64_t d = 0; d < head.D; ++d) {
          const auto at_q = static_cast<size_t>(q * head.D + d),
                     at_k = static_cast<size_t>(k * head.D + d);
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

}  // namespace ingot::test
