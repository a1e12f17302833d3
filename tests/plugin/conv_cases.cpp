// See conv_cases.h.
#include "plugin/conv_cases.h"

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
  for (Tensor* t : {&in.x, &in.w, &in.w1, &in.wg, &in.bias, &in.mean, &in.var, &in.gamma, &in.beta, &in.add,
                    &in.x1d, &in.w1d})
    t->eval_();
  return in;
}

ConvInputs ConvInputs::moved(const Device& d, DType t) const {
  ConvInputs in = *this;
  for (Tensor* v : {&in.x, &in.w, &in.w1, &in.wg, &in.bias, &in.mean, &in.var, &in.gamma, &in.beta, &in.add,
                    &in.x1d, &in.w1d}) {
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
      {"norm add relu", "conv+bias+add+relu", true, [](In i) { return relu(norm(i, conv(i)) + i.add); }},
      {"add norm relu", "conv+bias+add+relu", true, [](In i) { return relu(i.add + norm(i, conv(i))); }},
      {"norm without weights", "conv+bias+relu", true,
       [](In i) { return relu(batch_norm(conv(i), i.mean, i.var)); }},
      {"bias relu", "conv+bias+relu", false, [](In i) { return relu(conv2d(i.x, i.w, i.bias, 1, 1)); }},
      {"bias add", "conv+bias+add", false, [](In i) { return conv2d(i.x, i.w, i.bias, 1, 1) + i.add; }},
      {"bias add relu", "conv+bias+add+relu", false,
       [](In i) { return relu(conv2d(i.x, i.w, i.bias, 1, 1) + i.add); }},
      {"bias norm", "conv+bias", true, [](In i) { return norm(i, conv2d(i.x, i.w, i.bias, 1, 1)); }},
      {"bias norm add relu", "conv+bias+add+relu", true,
       [](In i) { return relu(norm(i, conv2d(i.x, i.w, i.bias, 1, 1)) + i.add); }},
      {"factor shift", "conv+bias+relu", true,
       [](In i) { return relu(conv(i) * vector(i.gamma) + vector(i.beta)); }},
      {"shift", "conv+bias+relu", false, [](In i) { return relu(conv(i) + vector(i.beta)); }},
      {"minus mean", "conv+bias", false, [](In i) { return conv(i) - vector(i.mean); }},
      {"1 x 1", "conv+bias+add+relu", true, [](In i) { return relu(norm(i, conv2d(i.x, i.w1)) + i.add); }},
      {"stride 2", "conv+bias+relu", true, [](In i) { return relu(norm(i, conv2d(i.x, i.w, {}, 2, 1))); }},
      {"two groups", "conv+bias+add+relu", true,
       [](In i) { return relu(norm(i, conv2d(i.x, i.wg, {}, 1, 1, 1, 2)) + i.add); }},
      {"two convolutions", "conv+bias+add+relu", true,
       [](In i) { return relu(norm(i, conv(i)) + norm(i, conv2d(i.x, i.w1))); }},
      {"in a row", "conv+bias+add+relu", true,
       [](In i) {
         Tensor y = relu(norm(i, conv(i)));
         return relu(norm(i, conv2d(y.narrow(1, 0, 8), i.w, {}, 1, 1)) + y);
       }},
      {"one dim", "conv+bias+relu", true, [](In i) { return relu(norm(i, conv1d(i.x1d, i.w1d, {}, 1, 1))); }},
  };
  return cases;
}

}  // namespace ingot::test
