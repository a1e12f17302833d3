// See conv_cases.h.
#include "plugin/conv_cases.h"

#include <algorithm>
#include <cmath>

namespace ingot::test {

ConvInputs conv_inputs() {
  manual_seed(11);
  ConvInputs in;
  in.x = randn({2, 8, 6, 6});
  in.w = randn({12, 8, 3, 3}) * 0.2;
  in.w1 = randn({12, 8, 1, 1}) * 0.4;
  in.wg = randn({12, 4, 3, 3}) * 0.2;
  in.bias = randn({12});
  in.mean = randn({12});
  in.var = rand({12}) + 0.5;
  in.gamma = randn({12});
  in.beta = randn({12});
  in.add = randn({2, 12, 6, 6});
  in.x1d = randn({2, 8, 9});
  in.w1d = randn({12, 8, 3}) * 0.2;
  for (Tensor* t : {&in.x, &in.w, &in.w1, &in.wg, &in.bias, &in.mean, &in.var, &in.gamma, &in.beta,
                    &in.add, &in.x1d, &in.w1d})
    t->eval_();
  return in;
}

ConvInputs ConvInputs::moved(const Device& d, DType t) const {
  ConvInputs in = *this;
  for (Tensor* v : {&in.x, &in.w, &in.w1, &in.wg, &in.bias, &in.mean, &in.var, &in.gamma, &in.beta,
                    &in.add, &in.x1d, &in.w1d}) {
    *v = v->to(t).to(d);
    v->eval_();
  }
  return in;
}

namespace {

Tensor conv(const ConvInputs& in) { return conv2d(in.x, in.w, {}, 1, 1); }
Tensor norm(const ConvInputs& in, const Tensor& y) {
  return batch_norm(y, in.mean, in.var, in.gamma, in.beta);
}
Tensor vector(const Tensor& v) { return v.reshape({1, 12, 1, 1}); }

}  // namespace

const std::vector<ConvCase>& conv_cases() {
  using In = const ConvInputs&;
  static const std::vector<ConvCase> cases = {
      {"norm", "conv+bias", true, [](In i) { return norm(i, conv(i)); }},
      {"norm relu", "conv+bias+relu", true, [](In i) { return relu(norm(i, conv(i))); }},
      {"norm add", "conv+bias+add", true, [](In i) { return norm(i, conv(i)) + i.add; }},
      {"norm add relu", "conv+bias+add+relu", true,
       [](In i) { return relu(norm(i, conv(i)) + i.add); }},
      {"add norm relu", "conv+bias+add+relu", true,
       [](In i) { return relu(i.add + norm(i, conv(i))); }},
      {"norm without weights", "conv+bias+relu", true,
       [](In i) { return relu(batch_norm(conv(i), i.mean, i.var)); }},
      {"bias relu", "conv+bias+relu", false,
       [](In i) { return relu(conv2d(i.x, i.w, i.bias, 1, 1)); }},
      {"bias add", "conv+bias+add", false,
       [](In i) { return conv2d(i.x, i.w, i.bias, 1, 1) + i.add; }},
      {"bias add relu", "conv+bias+add+relu", false,
       [](In i) { return relu(conv2d(i.x, i.w, i.bias, 1, 1) + i.add); }},
      {"bias norm", "conv+bias", true,
       [](In i) { return norm(i, conv2d(i.x, i.w, i.bias, 1, 1)); }},
      {"bias norm add relu", "conv+bias+add+relu", true,
       [](In i) { return relu(norm(i, conv2d(i.x, i.w, i.bias, 1, 1)) + i.add); }},
      {"factor shift", "conv+bias+relu", true,
       [](In i) { return relu(conv(i) * vector(i.gamma) + vector(i.beta)); }},
      {"shift", "conv+bias+relu", false, [](In i) { return relu(conv(i) + vector(i.beta)); }},
      {"minus mean", "conv+bias", false, [](In i) { return conv(i) - vector(i.mean); }},
      {"1 x 1", "conv+bias+add+relu", true,
       [](In i) { return relu(norm(i, conv2d(i.x, i.w1)) + i.add); }},
      {"stride 2", "conv+bias+relu", true,
       [](In i) { return relu(norm(i, conv2d(i.x, i.w, {}, 2, 1))); }},
      {"two groups", "conv+bias+add+relu", true,
       [](In i) { return relu(norm(i, conv2d(i.x, i.wg, {}, 1, 1, 1, 2)) + i.add); }},
      {"two convolutions", "conv+bias+add+relu", true,
       [](In i) { return relu(norm(i, conv(i)) + norm(i, conv2d(i.x, i.w1))); }},
      {"in a row", "conv+bias+add+relu", true,
       [](In i) {
         Tensor y = relu(norm(i, conv(i)));
         return relu(norm(i, conv2d(y.narrow(1, 0, 8), i.w, {}, 1, 1)) + y);
       }},
      {"one dim", "conv+bias+relu", true,
       [](In i) { return relu(norm(i, conv1d(i.x1d, i.w1d, {}, 1, 1))); }},
  };
  return cases;
}

const std::vector<Stem>& stems() {
  static const std::vector<Stem> all{
      {3, 10, 7, 3}, {1, 9, 3, 1}, {4, 8, 4, 1}, {2, 9, 5, 0}, {3, 8, 3, 0}};
  return all;
}

std::pair<double, double> stem_distance(const Stem& s, const Device& device) {
  manual_seed(7);
  Tensor x = randn({2, s.channels, s.size, s.size}).to(bfloat16),
         w = randn({6, s.channels, s.window, s.window}).to(bfloat16);
  eval({x, w});
  auto run = [&](const Device& d, DType t) {
    Tensor a = x.to(d).to(t), b = w.to(d).to(t).detach().requires_grad_();
    Tensor y = conv2d(a, b, {}, 2, s.pad);
    // As an optimiser uses it: a gradient that is kept itself is not taken by blocks.
    Tensor g = grad({(y * y).sum()}, {b})[0] * 0.5;
    eval({y, g});
    return std::pair(y.to(float64).to("cpu").to_vector<double>(),
                     g.to(float64).to("cpu").to_vector<double>());
  };
  auto far = [](const std::vector<double>& got, const std::vector<double>& want) {
    double d = 0, n = 0;
    for (size_t i = 0; i < want.size(); ++i)
      d += std::pow(got[i] - want[i], 2), n += want[i] * want[i];
    return got.size() == want.size() ? std::sqrt(d / n) : HUGE_VAL;
  };
  const auto want = run(Device("cpu"), float64), got = run(device, bfloat16);
  return {far(got.first, want.first), far(got.second, want.second)};
}

namespace {

struct Block {
  Dims shape, stride;
  std::vector<float> data;
  Block(const Dims& s, bool last, unsigned seed) : shape(s), stride(row_major(s)) {
    if (last) stride = {s[1] * s[2] * s[3], 1, s[1] * s[3], s[1]};
    for (int64_t i = 0; i < s.numel(); ++i) {
      seed = seed * 1664525u + 1013904223u;
      data.push_back(static_cast<float>(static_cast<int>(seed >> 16) % 9 - 4));
    }
  }
  float& at(int64_t a, int64_t b, int64_t c, int64_t d) {
    return data[static_cast<size_t>(a * stride[0] + b * stride[1] + c * stride[2] + d * stride[3])];
  }
  OperandSpec spec() const { return {float32, shape, stride, 0}; }
};

}  // namespace

double residual_call_difference(Backend& b, bool odd, bool relu) {
  const int64_t N = 2, C = 4, O = 8, S = 5;
  Block y({N, O, S, S}, true, 1), x({N, C, S, S}, true, 2), w({O, C, 3, 3}, true, 3),
      add({N, O, S, S}, !odd, 4);
  std::vector<float> bias{1, -2, 3, 0, 5, -6, 7, -8};
  LibrarySpec l;
  l.op = Op::Conv;
  l.operands = {y.spec(), x.spec(), w.spec(), {float32, {O}, {1}, 0}, add.spec()};
  l.epilogues = {Epilogue::Bias, Epilogue::Residual};
  if (relu) l.epilogues.set(Epilogue::Relu);
  l.attrs = ConvAttrs{{1, 1}, {1, 1}, {1, 1}, {1, 1}, 1};
  auto exe = b.prepare(0, l);
  std::vector<float>* host[] = {&y.data, &x.data, &w.data, &bias, &add.data};
  std::vector<void*> buffers;
  for (std::vector<float>* h : host) {
    buffers.push_back(b.allocate(0, h->size() * sizeof(float)));
    b.copy_from_host(0, buffers.back(), h->data(), h->size() * sizeof(float));
  }
  void* scratch = exe->scratch_bytes ? b.allocate(0, exe->scratch_bytes) : nullptr;
  RunArgs args;
  RunStatus status;
  args.status = &status;
  b.launch(0, *exe, buffers.data(), scratch, args);
  b.copy_to_host(0, y.data.data(), buffers[0], y.data.size() * sizeof(float));
  for (size_t i = 0; i < buffers.size(); ++i)
    b.deallocate(0, buffers[i], host[i]->size() * sizeof(float));
  if (scratch) b.deallocate(0, scratch, exe->scratch_bytes);
  double worst = status.code;
  for (int64_t n = 0; n < N; ++n)
    for (int64_t o = 0; o < O; ++o)
      for (int64_t i = 0; i < S; ++i)
        for (int64_t j = 0; j < S; ++j) {
          double sum = bias[static_cast<size_t>(o)] + add.at(n, o, i, j);
          for (int64_t c = 0; c < C; ++c)
            for (int64_t p = std::max<int64_t>(0, 1 - i); p < std::min<int64_t>(3, S + 1 - i); ++p)
              for (int64_t q = std::max<int64_t>(0, 1 - j); q < std::min<int64_t>(3, S + 1 - j);
                   ++q)
                sum += x.at(n, c, i + p - 1, j + q - 1) * w.at(o, c, p, q);
          if (relu) sum = std::max(sum, 0.0);
          worst = std::max(worst, std::abs(sum - y.at(n, o, i, j)));
        }
  return worst;
}

}  // namespace ingot::test
