// Planted mistakes in calls of functions of networks: kind, words, the line of the mistake and the
// fix.
#include <doctest/doctest.h>
#include <ingot/ingot.h>

#include <string>

using namespace ingot;

namespace {

template <class F>
void expect(ErrorKind kind, const std::string& words, int line, F mistake) {
  INFO(words);
  try {
    mistake();
    FAIL_CHECK("nothing was thrown");
  } catch (const Error& e) {
    const std::string what = e.what();
    CHECK(e.kind() == kind);
    CHECK_MESSAGE(what.find(words) != std::string::npos, what);
    CHECK_MESSAGE(what.find("neural_errors_test.cpp:" + std::to_string(line)) != std::string::npos,
                  what);
  }
}

}  // namespace

// NOLINTNEXTLINE(bugprone-macro-parentheses)
#define MISTAKE(kind, words, ...) \
  expect(ErrorKind::kind, words, __LINE__, [&] { (void)(__VA_ARGS__); })

TEST_CASE("convolutions say what is wrong") {
  Tensor x = zeros({2, 4, 5, 5}), w = zeros({6, 4, 3, 3});
  MISTAKE(Shape,
          "[conv2d] expects [batch, channels, height, width] or the same without batch, not "
          "float32[5, 5]",
          conv2d(zeros({5, 5}), w));
  MISTAKE(Shape, "the weight must be [out, in / groups, height, width]",
          conv2d(x, zeros({6, 4, 3})));
  MISTAKE(Shape, "has 4 channels; weight float32[6, 3, 3, 3] on cpu with 1 group expects 3",
          conv2d(x, zeros({6, 3, 3, 3})));
  MISTAKE(Shape, "a first size that groups divides",
          conv2d(x, zeros({5, 2, 3, 3}), {}, 1, 0, 1, 2));
  MISTAKE(Shape, "the bias must be [6]", conv2d(x, w, zeros({4})));
  MISTAKE(Shape, "does not fit into", conv2d(x, zeros({6, 4, 7, 7})));
  MISTAKE(Shape, "is empty", conv2d(x, zeros({6, 4, 0, 3})));
  MISTAKE(Value, "stride [0] must be at least 1", conv2d(x, w, {}, 0));
  MISTAKE(Value, "dilation [0] must be at least 1", conv2d(x, w, {}, 1, 0, 0));
  MISTAKE(Value, "padding [-1] must be at least 0", conv2d(x, w, {}, 1, -1));
  MISTAKE(Value, "neither one number nor one for each of the 2 dims", conv2d(x, w, {}, {1, 1, 1}));
  MISTAKE(Value, "groups is 0", conv2d(x, w, {}, 1, 0, 1, 0));
  MISTAKE(Value, "\"same\" expects stride 1", conv2d(x, w, {}, 2, "same"));
  MISTAKE(Value, "padding is \"full\"", conv2d(x, w, {}, 1, "full"));
  MISTAKE(DType, "operands differ in type", conv2d(x, w.to(float64)));
  MISTAKE(DType, "not defined for bool", conv2d(x.to(bool_), w.to(bool_)));
  MISTAKE(Device, "different devices", conv2d(x, w.to("cpu:1")));
  MISTAKE(State, "undefined", conv2d(x, Tensor()));
  MISTAKE(Value, "output_padding [2, 2] must be smaller than stride or dilation",
          conv_transpose2d(x, zeros({4, 2, 3, 3}), {}, 2, 0, 2));
  MISTAKE(Shape, "would have size", conv_transpose2d(x, zeros({4, 2, 3, 3}), {}, 1, 4));
  MISTAKE(Shape, "[in, out / groups, ", conv_transpose2d(x, zeros({4, 2, 3})));
}

TEST_CASE("poolings say what is wrong") {
  Tensor x = zeros({2, 4, 5, 5});
  MISTAKE(Shape, "[max_pool2d] expects [batch, channels and 2 dims]", max_pool2d(zeros({5, 5}), 2));
  MISTAKE(Shape, "do not fit into", max_pool2d(x, 7));
  MISTAKE(Value, "more than half of kernel_size", max_pool2d(x, 3, 1, 2));
  MISTAKE(Value, "kernel_size [0] must be at least 1", max_pool2d(x, 0));
  MISTAKE(DType, "needs numbers", max_pool2d(x > 0, 2));
  MISTAKE(DType, "needs a floating type", avg_pool2d(x.to(int64), 2));
  MISTAKE(Value, "divisor_override is 0", avg_pool2d(x, 2, 2, 0, false, true, 0));
  MISTAKE(Value, "norm_type is 0", lp_pool2d(x, 0, 2));
  MISTAKE(Value, "must be at least 1", adaptive_avg_pool2d(x, 0));
  MISTAKE(Shape, "needs an input with elements", adaptive_avg_pool2d(zeros({2, 4, 0, 5}), 1));
}

TEST_CASE("batch_norm says what is wrong") {
  Tensor x = zeros({2, 4, 5, 5}), four = ones({4}), five = ones({5});
  MISTAKE(Shape, "[batch_norm] expects [batch, channels, ...]", batch_norm(four, four, four));
  MISTAKE(Shape, "running_mean must be [4]", batch_norm(x, five, five));
  MISTAKE(Shape, "weight must be [4]", batch_norm(x, four, four, five));
  MISTAKE(Value, "takes running_mean and running_var together", batch_norm(x, four, {}));
  MISTAKE(Value, "one value per channel", batch_norm(zeros({1, 4}), {}, {}, {}, {}, true));
  MISTAKE(DType, "needs a floating type", batch_norm(x.to(int64), four, four));
}

TEST_CASE("norms, windows, sizes and recurrent networks say what is wrong") {
  Tensor x = zeros({2, 4, 5, 5}), four = ones({4}), five = ones({5});
  MISTAKE(Value, "[group_norm] 3 groups do not divide the channels", group_norm(x, 3));
  MISTAKE(Shape, "weight must be [4]", group_norm(x, 2, five));
  MISTAKE(Value, "one value per sample and channel", instance_norm(zeros({2, 4, 1})));
  MISTAKE(Value, "needs running_mean", instance_norm(x, {}, {}, {}, {}, false));
  MISTAKE(Value, "size is 0", local_response_norm(x, 0));
  MISTAKE(Value, "p is a probability", dropout2d(x, 1.5));
  MISTAKE(Shape, "[dropout1d] expects", dropout1d(zeros({4}), 0.5));
  MISTAKE(Value, "p is a probability", alpha_dropout(x, -1, true));
  MISTAKE(Shape, "[unfold] windows of [7, 7] do not fit", unfold(x, 7));
  MISTAKE(Shape, "does not fold into", fold(zeros({2, 8, 5}), {4, 4}, 2));
  MISTAKE(Value, "expects either size or scale_factor", interpolate(x, {}));
  MISTAKE(Value, "mode is \"cubic\"", interpolate(x, {{3}, {}, "cubic"}));
  MISTAKE(Value, "is for 1 dims", interpolate(x, {{3}, {}, "linear"}));
  MISTAKE(Value, "align_corners has no meaning", interpolate(x, {{3}, {}, "nearest", true}));
  MISTAKE(Value, "scale_factor is 0", interpolate(x, {{}, {0.0}}));
  MISTAKE(Value, "does not divide the channels", pixel_shuffle(x, 3));
  MISTAKE(Value, "2 does not divide height and width", pixel_unshuffle(x, 2));
  MISTAKE(Value, "groups do not divide", channel_shuffle(x, 3));
  Tensor s = zeros({3, 2, 4}), ih = zeros({8, 4}), hh = zeros({8, 2}), b = zeros({8});
  MISTAKE(Shape, "[lstm] wants [steps, batch, features]", lstm(four, {}, {}, {ih, hh, b, b}));
  MISTAKE(Value, "wants 4 weights", lstm(s, {}, {}, {ih, hh}));
  MISTAKE(Shape, "layer 0 wants weights [8, 4]", lstm(s, {}, {}, {zeros({8, 3}), hh, b, b}));
  MISTAKE(Shape, "h0 must be [1, 2, 2]", lstm(s, zeros({1, 2, 3}), {}, {ih, hh, b, b}));
  RnnOptions o;
  o.lengths = {3, 4};
  MISTAKE(Value, "lengths must be one for each of the 2 sequences, from 1 to 3",
          lstm(s, {}, {}, {ih, hh, b, b}, true, o));
  o = {};
  o.nonlinearity = "selu";
  MISTAKE(Value, "nonlinearity is \"selu\"", rnn(s, {}, {zeros({2, 4}), zeros({2, 2})}, false, o));
}
