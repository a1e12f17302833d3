// The op cases (see op_cases.h) of convolutions, poolings and norms; op_test.cpp runs them.
#include "ops/op_cases.h"

#include <algorithm>
#include <functional>

namespace ingot::check {
namespace {

using List = std::vector<Tensor>;
using Unary = std::function<Tensor(const Tensor&)>;

Function one(Unary f) {
  return [f](const List& x) { return List{f(x[0])}; };
}

void add_conv(std::vector<Case>& c) {
  auto with_bias = [](auto f) {
    return [f](const List& x) { return List{f(x[0], x[1], x.size() > 2 ? x[2] : Tensor())}; };
  };
  using T = const Tensor&;
  c.push_back({"conv1d",
               {{{2, 3, 7}}, {{4, 3, 3}}, {{4}}},
               with_bias([](T x, T w, T b) { return conv1d(x, w, b, 2, 1); }),
               Types::Number,
               true,
               8});
  c.push_back({"conv1d same",
               {{{1, 2, 5}}, {{2, 2, 4}}},
               with_bias([](T x, T w, T b) { return conv1d(x, w, b, 1, "same"); }),
               Types::Float,
               true,
               8});
  c.push_back({"conv2d",
               {{{2, 3, 5, 6}}, {{4, 3, 3, 2}}},
               with_bias([](T x, T w, T b) { return conv2d(x, w, b); }),
               Types::Number,
               true,
               8});
  c.push_back({"conv2d stride pad bias",
               {{{2, 2, 7, 6}}, {{3, 2, 3, 3}}, {{3}}},
               with_bias([](T x, T w, T b) {
                 return conv2d(x, w, b, {2, 3}, {1, 2});
               }),
               Types::Float,
               true,
               8});
  c.push_back({"conv2d dilated groups",
               {{{1, 4, 7, 7}}, {{6, 2, 3, 2}}, {{6}}},
               with_bias([](T x, T w, T b) {
                 return conv2d(x, w, b, 2, {2, 1}, {2, 3}, 2);
               }),
               Types::Float,
               true,
               8});
  c.push_back({"conv2d depthwise",
               {{{2, 3, 5, 5}}, {{3, 1, 3, 3}}},
               with_bias([](T x, T w, T b) { return conv2d(x, w, b, 1, 1, 1, 3); }),
               Types::Float,
               true,
               8});
  c.push_back({"conv2d 1x1 relu",
               {{{2, 3, 4, 4}}, {{5, 3, 1, 1}}, {{5}}},
               with_bias([](T x, T w, T b) { return relu(conv2d(x, w, b)) * 2.0; }),
               Types::Float,
               true,
               8});
  c.push_back({"conv2d same even",
               {{{1, 2, 4, 5}}, {{2, 2, 2, 4}}},
               with_bias([](T x, T w, T b) {
                 return conv2d(x, w, b, 1, "same", {1, 2});
               }),
               Types::Float,
               true,
               8});
  c.push_back({"conv2d without batch",
               {{{2, 5, 5}}, {{3, 2, 3, 3}}},
               with_bias([](T x, T w, T b) { return conv2d(x, w, b, 1, "valid"); }),
               Types::Float,
               true,
               8});
  c.push_back({"conv2d of nothing", {{{0, 2, 5, 5}}, {{3, 2, 3, 3}}}, with_bias([](T x, T w, T b) {
                 return conv2d(x, w, b);
               })});
  c.push_back({"conv2d of views",
               {{{5, 6, 2, 3}}, {{3, 3, 3, 4}}},
               with_bias([](T x, T w, T) {
                 return conv2d(x.permute({2, 3, 0, 1}), w.permute({3, 0, 1, 2})) * 2.0;
               }),
               Types::Float,
               true,
               8});
  c.push_back({"conv2d twice",
               {{{1, 2, 5, 5}}, {{3, 2, 3, 3}}, {{2, 3, 3, 3}}},
               [](const List& x) {
                 return List{conv2d(relu(conv2d(x[0], x[1], {}, 1, 1)), x[2], {}, 2, 1)};
               },
               Types::Float,
               true,
               16});
  c.push_back({"conv3d",
               {{{1, 2, 4, 3, 5}}, {{3, 2, 2, 2, 3}}, {{3}}},
               with_bias([](T x, T w, T b) {
                 return conv3d(x, w, b, {1, 1, 2}, {1, 0, 1});
               }),
               Types::Float,
               true,
               8});
  c.push_back({"conv_transpose1d",
               {{{2, 3, 4}}, {{3, 2, 3}}, {{2}}},
               with_bias([](T x, T w, T b) { return conv_transpose1d(x, w, b, 2, 1, 1); }),
               Types::Float,
               true,
               8});
  c.push_back({"conv_transpose1d far",
               {{{1, 2, 3}}, {{2, 2, 2}}},
               with_bias([](T x, T w, T b) { return conv_transpose1d(x, w, b, 2, 1, 3, 1, 4); }),
               Types::Float,
               true,
               8});
  c.push_back({"conv_transpose2d",
               {{{2, 4, 3, 3}}, {{4, 2, 3, 2}}, {{4}}},
               with_bias([](T x, T w, T b) {
                 return conv_transpose2d(x, w, b, {2, 1}, {1, 0}, {1, 0}, 2);
               }),
               Types::Number,
               true,
               8});
  c.push_back({"conv_transpose3d",
               {{{1, 2, 2, 3, 2}}, {{2, 2, 2, 2, 2}}},
               with_bias([](T x, T w, T b) {
                 return conv_transpose3d(x, w, b, 2, 0, 0, 1, {1, 1, 2});
               }),
               Types::Float,
               true,
               8});
  // Enough channels for the blocks of the vectorised kernels.
  c.push_back({"conv2d wide",
               {{{2, 16, 6, 6}, -0.5, 0.5}, {{17, 16, 3, 3}, -0.5, 0.5}, {{17}}},
               with_bias([](T x, T w, T b) { return relu(conv2d(x, w, b, 2, 1)); }),
               Types::Float,
               false,
               8});
}

// The gradients are primitives too: each is a case, with a gradient in turn.
void add_second(std::vector<Case>& c) {
  auto gradients = [](const Function& f) {
    return [f](const List& x) {
      std::vector<Tensor> of;
      for (const Tensor& t : x) {
        of.push_back(t.requires_grad() ? t : t.detach());
        of.back().requires_grad_();
      }
      std::vector<Tensor> y = f(of);
      Tensor s = (y[0].to(float64) * y[0].to(float64)).sum();
      return grad({s}, of, {}, true, true);
    };
  };
  c.push_back({"second conv2d",
               {{{1, 2, 4, 4}}, {{2, 2, 2, 3}}},
               gradients([](const List& x) { return List{conv2d(x[0], x[1], {}, 2, 1)}; }),
               Types::Float,
               true,
               16});
  c.push_back({"second conv_transpose1d",
               {{{1, 2, 3}}, {{2, 2, 2}}},
               gradients([](const List& x) { return List{conv_transpose1d(x[0], x[1], {}, 2)}; }),
               Types::Float,
               true,
               16});
  c.push_back({"second max_pool2d",
               {{{1, 2, 4, 4}}},
               gradients([](const List& x) { return List{max_pool2d(x[0], 2, 1)}; }),
               Types::Float,
               true,
               16});
  c.push_back({"second lstm",
               {{{2, 2, 2}}, {{4, 2}}, {{4, 1}}},
               gradients([=](const List& x) {
                 return List{lstm(x[0], {}, {}, {x[1], x[2]}, false).output};
               }),
               Types::Float,
               true,
               64});
  c.push_back({"second avg_pool2d",
               {{{1, 2, 4, 4}}},
               gradients([](const List& x) { return List{avg_pool2d(x[0], 3, 1)}; }),
               Types::Float,
               true,
               16});
  c.push_back({"second batch_norm",
               {{{3, 2, 2}}, {{2}}, {{2}}},
               gradients([](const List& x) {
                 return List{batch_norm(x[0], {}, {}, x[1], x[2], true) * x[0]};
               }),
               Types::Float,
               true,
               64});
}

void add_pool(std::vector<Case>& c) {
  c.push_back({"max_pool1d",
               {{{2, 3, 8}}},
               one([](const Tensor& x) { return max_pool1d(x, 3, 2, 1); }),
               Types::Number});
  c.push_back({"max_pool2d",
               {{{2, 3, 6, 7}}},
               one([](const Tensor& x) { return max_pool2d(x, 2); }),
               Types::Number});
  c.push_back({"max_pool2d overlapping",
               {{{2, 2, 7, 7}}},
               one([](const Tensor& x) { return max_pool2d(x, 3, 2, 1); }),
               Types::Float});
  c.push_back({"max_pool2d ceil dilated",
               {{{1, 2, 8, 7}}},
               one([](const Tensor& x) {
                 return max_pool2d(x, {2, 3}, 2, {1, 0}, {2, 1}, true);
               }),
               Types::Float});
  c.push_back({"max_pool2d of relu",
               {{{1, 2, 6, 6}, 0.1, 2}},
               one([](const Tensor& x) { return max_pool2d(relu(x * 2.0 + 1.0), 2) * 3.0; }),
               Types::Float});
  c.push_back({"max_pool2d of a norm and relu",
               {{{2, 3, 8, 11}}, {{1, 3, 1, 1}}, {{1, 3, 1, 1}}},
               [](const List& x) { return List{max_pool2d(relu(x[0] * x[1] + x[2]), 3, 2, 1)}; },
               Types::Float});
  c.push_back({"residual block",
               {{{2, 4, 6, 6}}, {{4, 4, 3, 3}}, {{4, 4, 1, 1}}},
               [](const List& x) {
                 Tensor y = relu(batch_norm(conv2d(x[0], x[1], {}, 1, 1), {}, {}, {}, {}, true));
                 Tensor z = relu(batch_norm(conv2d(y, x[2]), {}, {}, {}, {}, true) + y);
                 return List{max_pool2d(z, 3, 2, 1)};
               },
               Types::Float,
               true,
               64});
  c.push_back({"max_pool3d",
               {{{1, 2, 4, 4, 5}}},
               one([](const Tensor& x) {
                 return max_pool3d(x, 2, {1, 2, 2});
               }),
               Types::Float});
  c.push_back({"max_pool2d ties",
               {{{1, 1, 4, 4}}},
               one([](const Tensor& x) { return max_pool2d(x - x + 1.0, 2, 1); }),
               Types::Float,
               false});
  c.push_back({"max_pool indices",
               {{{2, 2, 5, 6}}},
               [](const List& x) {
                 auto a = max_pool2d_with_indices(x[0], 3, 2, 1);
                 auto b = max_pool2d_with_indices(x[0], 2, {}, 0, 2, true);
                 return List{a.values, a.indices, b.indices};
               },
               Types::Float});
  c.push_back({"avg_pool1d",
               {{{2, 3, 7}}},
               one([](const Tensor& x) { return avg_pool1d(x, 3, 2, 1); }),
               Types::Float,
               true,
               4});
  c.push_back({"avg_pool2d",
               {{{2, 3, 6, 6}}},
               one([](const Tensor& x) { return avg_pool2d(x, 2); }),
               Types::Float,
               true,
               4});
  c.push_back({"avg_pool2d not padding",
               {{{1, 2, 5, 6}}},
               one([](const Tensor& x) { return avg_pool2d(x, 3, 2, 1, true, false); }),
               Types::Float,
               true,
               4});
  c.push_back({"avg_pool2d ceil",
               {{{1, 2, 6, 6}}},
               one([](const Tensor& x) { return avg_pool2d(x, 3, 2, 1, true); }),
               Types::Float,
               true,
               4});
  c.push_back({"avg_pool3d divisor",
               {{{1, 1, 4, 4, 4}}},
               one([](const Tensor& x) { return avg_pool3d(x, 2, 1, 0, false, true, 3); }),
               Types::Float,
               true,
               4});
  c.push_back({"lp_pool2d",
               {{{1, 2, 4, 4}, 0.3, 2}},
               one([](const Tensor& x) { return lp_pool2d(x, 2, 2) + lp_pool2d(x, 3, 2); }),
               Types::Float,
               true,
               8});
  c.push_back({"lp_pool1d",
               {{{1, 2, 5}, 0.3, 2}},
               one([](const Tensor& x) { return lp_pool1d(x, 1, 2, {}, true); }),
               Types::Float,
               true,
               8});
  c.push_back({"adaptive_avg_pool2d",
               {{{2, 2, 6, 4}}},
               one([](const Tensor& x) {
                 return adaptive_avg_pool2d(x, {3, 1});
               }),
               Types::Float,
               true,
               4});
  c.push_back({"adaptive_avg_pool2d uneven",
               {{{2, 2, 7, 5}}},
               one([](const Tensor& x) {
                 return adaptive_avg_pool2d(x, {3, -1});
               }),
               Types::Float,
               true,
               4});
  c.push_back({"adaptive_avg_pool1d",
               {{{2, 5}}},
               one([](const Tensor& x) { return adaptive_avg_pool1d(x, 3); }),
               Types::Float,
               true,
               4});
  c.push_back({"adaptive_max_pool2d",
               {{{2, 2, 6, 4}}},
               one([](const Tensor& x) {
                 return adaptive_max_pool2d(x, {3, 2});
               }),
               Types::Float});
  c.push_back({"adaptive_max_pool3d uneven",
               {{{1, 2, 3, 4, 5}}},
               one([](const Tensor& x) {
                 return adaptive_max_pool3d(x, {2, 3, 5});
               }),
               Types::Float});
}

void add_norm(std::vector<Case>& c) {
  auto bn = [](const List& x) {
    return List{batch_norm(x[0], {}, {}, x[1], x[2], true, 0.1, 1e-3)};
  };
  c.push_back({"batch_norm", {{{3, 4, 2, 3}}, {{4}}, {{4}}}, bn, Types::Float, true, 16});
  c.push_back({"batch_norm 2d", {{{5, 3}}, {{3}}, {{3}}}, bn, Types::Float, true, 16});
  c.push_back(
      {"batch_norm off zero", {{{4, 2, 5}, 99, 101}, {{2}}, {{2}}}, bn, Types::Float, true, 400});
  c.push_back({"batch_norm plain relu",
               {{{4, 2, 5}}},
               one([](const Tensor& x) { return relu(batch_norm(x, {}, {}, {}, {}, true)); }),
               Types::Float,
               true,
               16});
  c.push_back({"batch_norm eval",
               {{{3, 2, 4}}, {{2}}, {{2}, 0.5, 2}, {{2}}, {{2}}},
               [](const List& x) { return List{batch_norm(x[0], x[1], x[2], x[3], x[4])}; },
               Types::Float,
               true,
               8});
  c.push_back({"batch_norm running",
               {{{3, 2, 4}}, {{2}, -1, 1, float32}, {{2}, 0.5, 2, float32}},
               [](const List& x) {
                 Tensor m = x[1].clone(), v = x[2].clone();
                 Tensor y = batch_norm(x[0], m, v, {}, {}, true, 0.25);
                 return List{y, m, v};
               },
               Types::Float,
               false,
               16});
}

void add_more_norms(std::vector<Case>& c) {
  c.push_back({"group_norm",
               {{{2, 4, 3, 2}}, {{4}}, {{4}}},
               [](const List& x) { return List{group_norm(x[0], 2, x[1], x[2], 1e-3)}; },
               Types::Float,
               true,
               32});
  c.push_back(
      {"instance_norm",
       {{{2, 3, 5}}, {{3}}, {{3}}},
       [](const List& x) { return List{instance_norm(x[0], {}, {}, x[1], x[2], true, 0.1, 1e-3)}; },
       Types::Float,
       true,
       32});
  c.push_back({"instance_norm running",
               {{{2, 3, 2, 4}}, {{3}, -1, 1, float32}, {{3}, 0.5, 2, float32}},
               [](const List& x) {
                 Tensor m = x[1].clone(), v = x[2].clone();
                 Tensor y = instance_norm(x[0], m, v, {}, {}, true, 0.25);
                 return List{y, m, v, instance_norm(x[0], x[1], x[2], {}, {}, false)};
               },
               Types::Float,
               false,
               32});
  c.push_back({"local_response_norm",
               {{{2, 5, 3, 2}}},
               one([](const Tensor& x) {
                 return local_response_norm(x, 3, 0.1, 0.75, 2.0) + local_response_norm(x, 2);
               }),
               Types::Float,
               true,
               16});
}

void add_resampling(std::vector<Case>& c) {
  c.push_back({"unfold",
               {{{2, 3, 5, 4}}},
               one([](const Tensor& x) {
                 return unfold(x, {2, 3}, 1, 1, 2);
               }),
               Types::Number});
  c.push_back({"fold",
               {{{2, 12, 12}}},
               one([](const Tensor& x) {
                 return fold(x, {4, 5}, 2);
               }),
               Types::Number});
  c.push_back(
      {"fold of unfold",
       {{{3, 5, 5}}},
       one([](const Tensor& x) { return fold(unfold(x, 3, 1, 1, 2) * 2.0, 5, 3, 1, 1, 2); }),
       Types::Float,
       true,
       4});
  auto scaled = [](std::string_view mode, PerDim size, std::vector<double> factor, bool align) {
    return one([=](const Tensor& x) { return interpolate(x, {size, factor, mode, align}); });
  };
  c.push_back({"interpolate nearest",
               {{{2, 2, 3, 4}}},
               scaled("nearest", {}, {2.0}, false),
               Types::Number});
  c.push_back({"interpolate nearest odd",
               {{{1, 2, 5, 4}}},
               scaled("nearest", {3, 7}, {}, false),
               Types::Float});
  c.push_back(
      {"interpolate linear", {{{2, 2, 5}}}, scaled("linear", 8, {}, false), Types::Float, true, 4});
  c.push_back({"interpolate bilinear",
               {{{1, 2, 3, 4}}},
               scaled("bilinear", {5, 7}, {}, false),
               Types::Float,
               true,
               4});
  c.push_back({"interpolate bilinear corners",
               {{{1, 2, 3, 4}}},
               scaled("bilinear", {}, {2.0, 1.5}, true),
               Types::Float,
               true,
               4});
  c.push_back({"interpolate bicubic",
               {{{1, 2, 4, 4}}},
               scaled("bicubic", {6, 3}, {}, false),
               Types::Float,
               true,
               8});
  c.push_back({"interpolate trilinear",
               {{{1, 1, 2, 3, 2}}},
               scaled("trilinear", {3, 4, 4}, {}, false),
               Types::Float,
               true,
               8});
  c.push_back({"interpolate area",
               {{{1, 2, 6, 5}}},
               scaled("area", {3, 2}, {}, false),
               Types::Float,
               true,
               4});
  c.push_back({"pixel_shuffle",
               {{{2, 8, 2, 3}}},
               one([](const Tensor& x) { return pixel_shuffle(x, 2) * 2.0; }),
               Types::Number});
  c.push_back({"pixel_unshuffle",
               {{{2, 2, 4, 6}}},
               one([](const Tensor& x) { return pixel_unshuffle(x, 2) * 2.0; }),
               Types::Number});
  c.push_back({"channel_shuffle",
               {{{2, 6, 3}}},
               one([](const Tensor& x) { return channel_shuffle(x, 3); }),
               Types::Number});
}

void add_recurrent(std::vector<Case>& c) {
  auto all = [](const RnnResult& r) {
    List l{r.output, r.h};
    if (r.c.defined()) l.push_back(r.c);
    return l;
  };
  auto In4 = [](int64_t G, int64_t I, int64_t H) {
    return std::vector<In>{{{3, 2, I}}, {{G * H, I}}, {{G * H, H}}, {{G * H}}, {{G * H}}};
  };
  c.push_back({"lstm", In4(4, 3, 2),
               [=](const List& x) {
                 return all(lstm(x[0], {}, {}, {x[1], x[2], x[3], x[4]}));
               },
               Types::Float, true, 16});
  c.push_back({"lstm whole, two ways, given states",
               {{{3, 2, 2}}, {{4, 2}}, {{4, 1}}, {{2, 2, 1}}, {{2, 2, 1}}},
               [=](const List& x) {
                 RnnOptions o;
                 o.bidirectional = true;
                 return all(lstm(x[0], x[3], x[4], {x[1], x[2], x[1] * 0.5, x[2]}, false, o));
               },
               Types::Float,
               true,
               16});
  c.push_back({"gru", In4(3, 3, 2),
               [=](const List& x) {
                 return all(gru(x[0], {}, {x[1], x[2], x[3], x[4]}));
               },
               Types::Float, true, 16});
  c.push_back({"rnn lengths", In4(1, 3, 2),
               [=](const List& x) {
                 RnnOptions o;
                 o.lengths = {3, 1};
                 return all(rnn(x[0], {}, {x[1], x[2], x[3], x[4]}, true, o));
               },
               Types::Float, true, 16});
  c.push_back({"lstm two ways",
               {{{2, 3, 2}}, {{4, 2}}, {{4, 1}}, {{2, 2, 1}}, {{2, 2, 1}}},
               [=](const List& x) {
                 RnnOptions o;
                 o.bidirectional = o.batch_first = true;
                 o.lengths = {3, 2};
                 return all(lstm(x[0], x[3], x[4], {x[1], x[2], x[1] * 0.5, x[2]}, false, o));
               },
               Types::Float,
               true,
               16});
}

}  // namespace

const std::vector<Case>& cases() {
  static const std::vector<Case> all = [] {
    std::vector<Case> c;
    add_conv(c);
    add_second(c);
    add_pool(c);
    add_norm(c);
    add_more_norms(c);
    add_resampling(c);
    add_recurrent(c);
    return c;
  }();
  return all;
}

}  // namespace ingot::check
