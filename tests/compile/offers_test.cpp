// What explain() says of library calls: which kernel runs each, and why those that the backend
// prefers do not.
#include <doctest/doctest.h>
#include <ingot/ingot.h>

#include <algorithm>

#include "backend/null/null_backend.h"
#include "codegen/offer.h"

using namespace ingot;

namespace {

Tensor leaf(const Dims& shape, DType t = float32, const Device& d = Device("cpu")) {
  return full(shape, 0.5).to(t).to(d).eval_().detach();
}

// The only library call or composite of the program.
Explanation::Choice only_choice(const Tensor& y, const char* call) {
  const Explanation e = explain(y, {.why = true});
  INFO(e.text);
  std::vector<Explanation::Choice> found;
  for (const Explanation::Choice& c : e.choices)
    if (c.call.starts_with(call)) found.push_back(c);
  REQUIRE(found.size() == 1);
  for (const std::string& why : found[0].refused) {  // each is in the text too
    const size_t colon = why.find(": ");
    REQUIRE(colon != std::string::npos);
    const std::string line = "not [" + why.substr(0, colon) + "]" + why.substr(colon) + "\n";
    CHECK(e.text.find(line) != std::string::npos);
  }
  const std::string name = found[0].kernel.empty() ? "decomposed: " : " [" + found[0].kernel + "]";
  CHECK(e.text.find(name) != std::string::npos);
  return found[0];
}

// Without numbers at the start of the list: what was refused, by name.
std::vector<std::string> names(const Explanation::Choice& c) {
  std::vector<std::string> all;
  for (const std::string& why : c.refused) all.push_back(why.substr(0, why.find(':')));
  return all;
}

using Names = std::vector<std::string>;

}  // namespace

TEST_CASE("products: few rows, then packed, then integers") {
  const auto product = [](int64_t rows, DType t) {
    return only_choice(matmul(leaf({rows, 64}, t), leaf({64, 96}, t)), "matmul");
  };
  const Explanation::Choice few = product(1, float32), many = product(64, float32),
                            wide = product(1, float64), whole = product(64, int32);
  CHECK(few.kernel == "few rows");
  CHECK(few.refused.empty());
  CHECK(many.kernel == "packed");
  CHECK(many.refused ==
        Names{"few rows: there are too many rows and columns, or they are not dense"});
  CHECK(wide.kernel == "packed");
  CHECK(wide.refused == Names{"few rows: it computes in float32 only"});
  CHECK(whole.kernel == "integers");
  CHECK(whole.refused ==
        Names{"few rows: it computes in float32 only", "packed: it is for floats"});
}

TEST_CASE("convolutions: depthwise, few channels, Winograd, oneDNN, im2col") {
  const auto conv = [](int64_t in, int64_t groups, DType t) {
    return only_choice(
        conv2d(leaf({2, in, 16, 16}, t), leaf({32, in / groups, 3, 3}, t), {}, 1, 1, 1, groups),
        "conv");
  };
  const Explanation::Choice depthwise = conv(32, 32, float32), plain = conv(32, 1, float32),
                            exact = conv(32, 1, float64);
  CHECK(depthwise.kernel == "depthwise");
  CHECK(depthwise.refused.empty());
  // With oneDNN or without it, all that come before are refused.
  if (plain.kernel == "oneDNN") {
    CHECK(names(plain) == Names{"depthwise", "few channels", "Winograd"});
  } else {
    CHECK(plain.kernel == "im2col");
    CHECK(names(plain) == Names{"depthwise", "few channels", "Winograd", "oneDNN"});
  }
  CHECK(plain.refused[1] == "few channels: there are too many input channels");
  CHECK(plain.refused[2] == "Winograd: INGOT_WINOGRAD does not ask for it");
  CHECK(exact.kernel == "im2col");
  CHECK(names(exact) == Names{"depthwise", "few channels", "Winograd", "oneDNN"});
  CHECK(exact.refused[1] == "few channels: it computes in float32 only");
}

TEST_CASE("recurrent layers of few steps are decomposed, and explain says why") {
  const auto layer = [](int64_t steps, const Device& d) {
    const std::vector<Tensor> weights{leaf({64, 8}, float32, d), leaf({64, 16}, float32, d)};
    return lstm(leaf({steps, 16, 8}, float32, d), {}, {}, weights, false).output;
  };
  const Explanation::Choice many = only_choice(layer(12, Device("cpu")), "lstm"),
                            few = only_choice(layer(3, Device("cpu")), "lstm"),
                            null = only_choice(layer(3, Device("null")), "lstm");
  CHECK(many.kernel == "packed steps");
  CHECK(many.refused.empty());
  CHECK(few.kernel == "");
  CHECK(few.call == "lstm float32[3, 16, 16]");
  CHECK(few.refused == Names{"packed steps: too few steps to pack the weight for"});
  CHECK(null.kernel == "null");
}

TEST_CASE("attention: the newest position, blocks of rows, or decomposed") {
  const auto attend = [](int64_t length, DType t, const Device& d) {
    const Tensor x = leaf({1, 2, length, 32}, t, d);
    return only_choice(scaled_dot_product_attention(x, x, x), "attention");
  };
  const Explanation::Choice many = attend(1024, float32, Device("cpu")),
                            few = attend(8, float32, Device("cpu")),
                            half = attend(1024, bfloat16, Device("cpu"));
  CHECK(many.kernel == "blocks of rows");
  CHECK(names(many) == Names{"newest position"});
  CHECK(few.kernel == "");
  CHECK(few.refused ==
        Names{"newest position: it is for the newest position of a cache",
              "blocks of rows: the sequences are so short that products and a softmax are faster"});
  CHECK(half.refused.back() == "blocks of rows: it computes in float32 only");

  const Device null("null");
  CHECK(attend(512, bfloat16, null).kernel == "null");
  CHECK(attend(512, float32, null).refused == Names{"null: it takes attention of 16 bits only"});
}

TEST_CASE("a refusal names the epilogues that a kernel does not have") {
  LibrarySpec call;
  call.op = Op::Matmul;
  call.epilogues = {Epilogue::Bias, Epilogue::Relu, Epilogue::ReluGrad};
  const OfferRow rows[] = {{"plain", {Op::Matmul}, {}},
                           {"biased", {Op::Matmul}, {Epilogue::Bias}},
                           {"other", {Op::Conv}, {}},
                           {"late", {Op::Matmul}, call.epilogues},
                           {"all", {Op::Matmul}, call.epilogues}};
  std::vector<Refusal> refused;
  const bool taken =
      first_offer(std::span<const OfferRow>(rows), call, &refused, [](const OfferRow& row, auto&) {
        return row.kernel == std::string("all");  // "late" does not say why
      });
  CHECK(taken);
  REQUIRE(refused.size() == 3);
  CHECK(refused[0].why == "it has no epilogue for bias, ReLU, ReLU's gradient");
  CHECK(refused[1].why == "it has no epilogue for ReLU, ReLU's gradient");
  CHECK(refused[2].why == "it cannot be made for matmul+bias+relu+relu_grad");
}

TEST_CASE("the text has reasons only where they are asked for") {
  const Tensor y = matmul(leaf({64, 64}), leaf({64, 96}));
  CHECK(explain(y).text.find("matmul [packed]\n") != std::string::npos);
  CHECK(explain(y).text.find("not [few rows]") == std::string::npos);
  CHECK(explain(y, {.why = true}).text.find("not [few rows]") != std::string::npos);
  CHECK(explain(y).kernels == Names{"matmul"});
}
