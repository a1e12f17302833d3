// Planted mistakes: each message is read in full, down to the line of the mistake and the call that
// fixes it.
#include <doctest/doctest.h>
#include <ingot/ingot.h>

#include <functional>
#include <string>
#include <vector>

using namespace ingot;

namespace {

struct Caught {
  bool thrown = false;
  ErrorKind kind{};
  std::string message, at;
  template <class F>
  Caught(F&& mistake, int line)
      : at("\n  at " + std::string(__FILE__) + ":" + std::to_string(line)) {
    try {
      mistake();
    } catch (const Error& e) {
      thrown = true;
      kind = e.kind();
      message = e.what();
    }
  }
  void says(ErrorKind want, const std::string& what, const std::string& fix = "",
            const std::string& layer = "") const {
    INFO(what);
    REQUIRE(thrown);
    CHECK(message == what + at + (layer.empty() ? "" : "\n  in layer " + layer) +
                         (fix.empty() ? "" : "\n  fix: " + fix));
    CHECK(kind == want);
  }
};

// A library of the user's own that hands its caller's line on.
Tensor my_layer(const Tensor& x, SourceLoc loc = SourceLoc::current()) {
  return linear(x, zeros({5, 4}), {}, loc);
}

}  // namespace

// NOLINTNEXTLINE(bugprone-macro-parentheses)
#define MISTAKE(...) Caught([&] { (void)(__VA_ARGS__); }, __LINE__)

TEST_CASE("devices that cannot be or are not there") {
  for (const int index : {-1, 64, 256, 1 << 20}) {
    CAPTURE(index);
    CHECK_THROWS_AS(Device(DeviceType::CPU, index), Error);
  }
  const Device none(DeviceType::CPU, 40);
  for (const auto& use : std::vector<std::function<void()>>{
           [&] {
             tensor({1.0, 2.0}, none).sum().item();
           },
           [&] { ones({2}, none).sum().item(); }, [&] { ones({2}).to(none).sum().item(); }})
    try {
      use();
      FAIL("no error");
    } catch (const Error& e) {
      CHECK(e.kind() == ErrorKind::Device);
      CHECK(std::string(e.what()).find("16 device(s)") != std::string::npos);
    }
}

TEST_CASE("operators") {
  Tensor a = zeros({2, 3}), b = zeros({4}), m = a > 0, i = ones({2, 3}, int64);
  MISTAKE(a + b).says(
      ErrorKind::Shape,
      "[add] cannot broadcast float32[2, 3] on cpu with float32[4] on cpu: dim -1 is 3 in "
      "the first and 4 in the second",
      "sizes must be equal or 1, counted from the last dim");
  MISTAKE(a * zeros({2}))
      .says(ErrorKind::Shape,
            "[mul] cannot broadcast float32[2, 3] on cpu with float32[2] on cpu: dim -1 is 3 in "
            "the first "
            "and 2 in the second",
            "to line it up with dim 0, use .reshape({2, 1})");
  MISTAKE(a < b).says(
      ErrorKind::Shape,
      "[lt] cannot broadcast float32[2, 3] on cpu with float32[4] on cpu: dim -1 is 3 in the "
      "first and 4 in the second",
      "sizes must be equal or 1, counted from the last dim");
  MISTAKE(m - m).says(ErrorKind::DType, "[sub] is not defined for bool: bool[2, 3] on cpu",
                      "use logical_xor(a, b), or convert with .to(int64)");
  MISTAKE(-m).says(ErrorKind::DType, "[neg] is not defined for bool: bool[2, 3] on cpu",
                   "use logical_not(x) or !x, or convert with .to(int64)");
  MISTAKE(a & i).says(ErrorKind::DType,
                      "[bitwise_and] needs bool or an integer type, not float32[2, 3] on cpu",
                      "convert with .to(int64)");
  MISTAKE(~a).says(ErrorKind::DType,
                   "[bitwise_not] needs bool or an integer type, not float32[2, 3] on cpu",
                   "convert with .to(int64)");
  const std::string undefined =
      "a tensor is undefined: it was made by Tensor() and never given a value, or it is the "
      "gradient of a "
      "parameter that has none";
  const std::string undefined_fix =
      "assign it first, for instance with zeros(shape); optimizer.step() takes gradients away: "
      "read them "
      "before it, or keep them by step(/*keep_gradients=*/true)";
  MISTAKE(a + Tensor()).says(ErrorKind::State, "[add] " + undefined, undefined_fix);
  MISTAKE(2.0 / Tensor()).says(ErrorKind::State, "[div] " + undefined, undefined_fix);
  Tensor c = zeros({2, 3}, "cpu:1");
  MISTAKE(a + c).says(
      ErrorKind::Device,
      "[add] operands are on different devices: float32[2, 3] on cpu and float32[2, 3] on cpu:1",
      "move one of them: the float32[2, 3] with .to(\"cpu\")");
}

TEST_CASE("the error names the line of the mistake") {
  Tensor a = zeros({2, 3}), b = zeros({4});
  int line = 0;
  try {
    Tensor fine = a * 2;
    line = __LINE__ + 1;
    Tensor bad = (a + 1) * (fine - b);
    line = 0;
  } catch (const Error& e) {
    CHECK(e.where().line == static_cast<uint32_t>(line));
    CHECK(e.op() == "sub");
  }
  CHECK(line != 0);
}

TEST_CASE("an error's parts") {
  try {
    Device nowhere("gpu");
    FAIL("there is no such device");
  } catch (const Error& e) {
    CHECK(e.reason() == "there is no device called \"gpu\"");
    CHECK(e.fix() == "use \"cpu\", \"cpu:1\", \"cuda\", \"cuda:0\" or Device::best()");
    CHECK(std::string(e.what()) == "[Device] " + e.reason() + "\n  fix: " + e.fix());
  }
}

TEST_CASE("in place") {
  Tensor a = zeros({2, 3}), i = ones({2, 3}, int64), m = ones({2}, bool_);
  MISTAKE(i += 1.5).says(ErrorKind::DType,
                         "[add_] the result is float32 and does not go into int64[2, 3] on cpu",
                         "compute a new tensor (x = x + v), or convert x first");
  MISTAKE(i /= 2).says(ErrorKind::DType,
                       "[div_] the result is float32 and does not go into int64[2, 3] on cpu",
                       "compute a new tensor (x = x / v), or convert x first");
  MISTAKE(a += zeros({4, 2, 3}))
      .says(ErrorKind::Shape,
            "[add_] float32[4, 2, 3] on cpu does not fit into float32[2, 3] on cpu",
            "the value must broadcast to [2, 3]");
  MISTAKE(a.copy_(zeros({2})))
      .says(ErrorKind::Shape, "[copy_] float32[2] on cpu does not fit into float32[2, 3] on cpu",
            "the value must broadcast to [2, 3]");
  MISTAKE(a[0] = zeros({2}))
      .says(ErrorKind::Shape, "[assignment] float32[2] on cpu does not fit into float32[3] on cpu",
            "the value must broadcast to [3]");
  MISTAKE(m.mul_(2)).says(ErrorKind::DType,
                          "[mul_] the result is int64 and does not go into bool[2] on cpu",
                          "compute a new tensor (x = x * v), or convert x first");
  MISTAKE(zeros({3}).expand({2, 3}) += 1)
      .says(ErrorKind::State,
            "[add_] several elements of the view float32[2, 3] on cpu are one element of its base: "
            "it cannot "
            "be written to",
            "write to a copy: x = x.clone()");
}

TEST_CASE("indexing") {
  Tensor a = zeros({2, 3}).set_name("scores");
  MISTAKE(a[2]).says(
      ErrorKind::Index,
      "[index] index 2 is outside dim 0 of float32[2, 3] on cpu (scores), which has 2 elements",
      "use an index from -2 to 1");
  MISTAKE(a[{Slice{}, -4}])
      .says(ErrorKind::Index,
            "[index] index -4 is outside dim 1 of float32[2, 3] on cpu (scores), which has 3 "
            "elements",
            "use an index from -3 to 2");
  MISTAKE(a[{0, 0, 0}])
      .says(ErrorKind::Index,
            "[index] 3 indices for float32[2, 3] on cpu (scores), which has 2 dims",
            "give at most one index for each dim");
  MISTAKE(a[{Ellipsis, Ellipsis}])
      .says(ErrorKind::Index,
            "[index] more than one Ellipsis in the index of float32[2, 3] on cpu (scores)",
            "use it once: it stands for all remaining dims");
  MISTAKE(a[Slice{0, 2, 0}])
      .says(ErrorKind::Index,
            "[index] the step of a Slice is 0 in the index of float32[2, 3] on cpu (scores)",
            "use a step of 1 or more, or a negative one to go backwards");
  MISTAKE(zeros({})[0])
      .says(ErrorKind::Index, "[index] 1 index for float32[] on cpu, which has 0 dims",
            "a 0-d tensor is read with x.item()");
  MISTAKE(a.select(0, 5))
      .says(ErrorKind::Index,
            "[select] index 5 is outside dim 0 of float32[2, 3] on cpu (scores), which has 2 "
            "elements");
  MISTAKE(a.narrow(1, 2, 2))
      .says(ErrorKind::Index,
            "[narrow] start 2 and length 2 leave dim 1 of float32[2, 3] on cpu (scores), which has "
            "3 elements",
            "start + length must be at most 3");
  MISTAKE(gather(a, 0, zeros({2, 3})))
      .says(ErrorKind::DType, "[gather] the index must be int64 or int32, not float32[2, 3] on cpu",
            "convert with .to(int64)");
  MISTAKE(gather(a, 0, zeros({2, 4}, int64)))
      .says(ErrorKind::Shape,
            "[gather] index int64[2, 4] on cpu does not fit float32[2, 3] on cpu (scores) along "
            "dim 0",
            "the index needs as many dims as the data and sizes no larger outside that dim");
  MISTAKE(embedding(a, zeros({2})))
      .says(ErrorKind::DType, "[embedding] the index must be int64 or int32, not float32[2] on cpu",
            "convert with .to(int64)");
}

TEST_CASE("shapes and dims") {
  Tensor a = zeros({2, 3});
  MISTAKE(a.reshape({4, 2}))
      .says(ErrorKind::Shape,
            "[reshape] float32[2, 3] on cpu has 6 elements, shape [4, 2] would have 8",
            "let one size be worked out: -1");
  MISTAKE(a.view({-1, 4}))
      .says(ErrorKind::Shape,
            "[reshape] float32[2, 3] on cpu has 6 elements, which [-1, 4] cannot hold: they are no "
            "multiple "
            "of 4",
            "the sizes besides -1 must divide 6");
  MISTAKE(a.reshape({-1, -1}))
      .says(ErrorKind::Shape, "[reshape] shape [-1, -1] has a negative size",
            "at most one size may be -1, the others must be 0 or more");
  MISTAKE(zeros({2, -3}))
      .says(ErrorKind::Shape, "[zeros] a size cannot be negative: [2, -3]", "sizes are 0 or more");
  MISTAKE(zeros({int64_t{1} << 40, int64_t{1} << 40}))
      .says(ErrorKind::Shape,
            "[zeros] shape [1099511627776, 1099511627776] has more than 2^60 elements");
  MISTAKE(a.sum(2)).says(
      ErrorKind::Dim, "[sum] dim 2 is outside float32[2, 3] on cpu, which takes dims from -2 to 1",
      "the last dim is -1");
  MISTAKE(a.mean({0, -2}))
      .says(ErrorKind::Dim, "[mean] dim -2 is named twice in [0, -2]", "name each dim once");
  MISTAKE(a.permute({0, 0}))
      .says(ErrorKind::Dim,
            "[permute] [0, 0] does not name each of the 2 dims of float32[2, 3] on cpu once",
            "list every dim from 0 to 1 once");
  MISTAKE(a.unsqueeze(4))
      .says(ErrorKind::Dim,
            "[unsqueeze] dim 4 is outside float32[2, 3] on cpu, which takes dims from -3 to 2",
            "the last dim is -1");
  MISTAKE(a.expand({4, 3}))
      .says(ErrorKind::Shape, "[expand] cannot expand float32[2, 3] on cpu to [4, 3]",
            "only dims of size 1, and new leading dims, can be repeated");
  MISTAKE(cat({a, zeros({2, 4})}))
      .says(ErrorKind::Shape,
            "[cat] sizes must agree but for dim 0: float32[2, 3] on cpu and float32[2, 4] on cpu");
  MISTAKE(cat({})).says(ErrorKind::Value, "[cat] was given no tensors", "give at least one");
  MISTAKE(stack({a, zeros({3, 2})}))
      .says(ErrorKind::Shape,
            "[stack] tensors differ in shape: float32[2, 3] on cpu and float32[3, 2] on cpu");
  MISTAKE(split(a, {1, 1}, 1))
      .says(ErrorKind::Value,
            "[split] the 2 sizes add up to 2, but dim 1 of float32[2, 3] on cpu has 3");
  MISTAKE(amax(zeros({0, 3}), 0))
      .says(ErrorKind::Shape, "[amax] cannot reduce over zero elements: float32[0, 3] on cpu",
            "check that the tensor is not empty, or reduce over other dims");
  MISTAKE(tensor({{1, 2}, {3}}))
      .says(ErrorKind::Shape, "[tensor] the lists within the list differ in length",
            "every row must have the same number of elements");
  MISTAKE(tensor(std::vector<float>{1, 2, 3}, {2, 2}))
      .says(ErrorKind::Shape,
            "[tensor] a vector of 3 elements does not fill shape [2, 2], which holds 4");
  MISTAKE(a.size(2)).says(
      ErrorKind::Dim, "[size] dim 2 is outside float32[2, 3] on cpu, which takes dims from -2 to 1",
      "the last dim is -1");
}

TEST_CASE("contraction") {
  Tensor a = zeros({2, 3}), w = zeros({5, 4}).set_name("fc.weight");
  MISTAKE(matmul(a, zeros({4, 5})))
      .says(ErrorKind::Shape,
            "[matmul] inner sizes differ: float32[2, 3] on cpu ends in 3, but float32[4, 5] on cpu "
            "has 4 rows");
  MISTAKE(a.matmul(zeros({5, 3})))
      .says(ErrorKind::Shape,
            "[matmul] inner sizes differ: float32[2, 3] on cpu ends in 3, but float32[5, 3] on cpu "
            "has 5 rows",
            "transpose the second: b.transpose(-1, -2)");
  MISTAKE(matmul(zeros({2, 4, 3}), zeros({3, 3, 5})))
      .says(ErrorKind::Shape,
            "[matmul] batch dims do not broadcast: float32[2, 4, 3] on cpu and float32[3, 3, 5] on "
            "cpu",
            "all dims but the last two must be equal or 1");
  MISTAKE(matmul(a, zeros({3, 5}, float64)))
      .says(ErrorKind::DType,
            "[matmul] operands differ in type: float32[2, 3] on cpu and float64[3, 5] on cpu",
            "convert one of them: .to(float64)");
  MISTAKE(matmul(a, zeros({3, 5}, "cpu:1")))
      .says(ErrorKind::Device,
            "[matmul] operands are on different devices: float32[2, 3] on cpu and float32[3, 5] on "
            "cpu:1",
            "move one of them with .to(\"cpu:1\")");
  MISTAKE(matmul(a, zeros({})))
      .says(ErrorKind::Shape,
            "[matmul] needs vectors or matrices, not float32[2, 3] on cpu and float32[] on cpu",
            "multiply by a 0-d tensor with *");
  MISTAKE(linear(a, w))
      .says(ErrorKind::Shape,
            "[linear] the input's last size must be the weight's second: float32[2, 3] on cpu "
            "against "
            "weight float32[5, 4] on cpu (fc.weight)",
            "the layer expects inputs of 4 features");
  MISTAKE(linear(zeros({8, 2, 2}), w))
      .says(ErrorKind::Shape,
            "[linear] the input's last size must be the weight's second: float32[8, 2, 2] on cpu "
            "against "
            "weight float32[5, 4] "
            "on cpu (fc.weight)",
            "flatten the input first: x.flatten(1)");
  MISTAKE(my_layer(a))
      .says(ErrorKind::Shape,
            "[linear] the input's last size must be the weight's second: float32[2, 3] on cpu "
            "against "
            "weight float32[5, 4] on cpu",
            "the layer expects inputs of 4 features");
}

TEST_CASE("networks and options") {
  Tensor a = zeros({2, 3}), i = ones({2, 3}, int64);
  MISTAKE(softmax(a, 2))
      .says(ErrorKind::Dim,
            "[softmax] dim 2 is outside float32[2, 3] on cpu, which takes dims from -2 to 1",
            "the last dim is -1");
  MISTAKE(i.softmax(1))
      .says(ErrorKind::DType, "[softmax] needs a floating type, not int64[2, 3] on cpu",
            "convert with x.to(float32)");
  MISTAKE(mean(i)).says(ErrorKind::DType, "[mean] needs a floating type, not int64[2, 3] on cpu",
                        "convert with x.to(float32)");
  MISTAKE(layer_norm(a, {4}))
      .says(ErrorKind::Shape,
            "[layer_norm] normalized_shape [4] is not the end of float32[2, 3] on cpu",
            "to normalise over the last dim, use {3}");
  MISTAKE(layer_norm(a, {3}, zeros({2})))
      .says(ErrorKind::Shape, "[layer_norm] the weight must be [3], not float32[2] on cpu");
  MISTAKE(gelu(a, "fast"))
      .says(ErrorKind::Value, "[gelu] approximate is \"fast\"", "use \"none\" or \"tanh\"");
  MISTAKE(dropout(a, 1.5))
      .says(ErrorKind::Value, "[dropout] p is a probability, between 0 and 1, not 1.5");
  MISTAKE(cross_entropy(a, zeros({2})))
      .says(
          ErrorKind::Shape,
          "[cross_entropy] probabilities as the target need the input's shape and floating types: "
          "float32[2, 3] on cpu and float32[2] on cpu",
          "class numbers must be int64 or int32");
  MISTAKE(cross_entropy(a, zeros({3}, int64)))
      .says(ErrorKind::Shape,
            "[cross_entropy] the target must have the input's shape without the class dim: "
            "float32[2, 3] on "
            "cpu against target "
            "int64[3] on cpu",
            "the target must be [2]");
  MISTAKE(cross_entropy(zeros({4, 8, 50}), zeros({4, 8}, int64)))
      .says(ErrorKind::Shape,
            "[cross_entropy] the target must have the input's shape without the class dim: "
            "float32[4, 8, 50] "
            "on cpu against "
            "target int64[4, 8] on cpu",
            "flatten both: cross_entropy(x.flatten(0, 1), target.flatten())");
  MISTAKE(mse_loss(a, a, "average"))
      .says(ErrorKind::Value, "[mse_loss] reduction is \"average\"",
            "use \"mean\", \"sum\" or \"none\"");
  MISTAKE(where(a, a, a))
      .says(ErrorKind::DType, "[where] the condition must be bool, not float32[2, 3] on cpu",
            "compare it, as in condition != 0");
  MISTAKE(pow(i, -2))
      .says(ErrorKind::Value,
            "[pow] an integer tensor cannot be raised to the negative power -2: int64[2, 3] on cpu",
            "convert first: pow(x.to(float32), -2)");
  MISTAKE(arange(0, 5, -1))
      .says(ErrorKind::Value, "[arange] a step of -1 does not lead from 0 to 5",
            "change the sign of the step");
  MISTAKE(rand({2}, int64))
      .says(ErrorKind::DType, "[rand] makes floating numbers, not int64",
            "use randint() for integers");
  MISTAKE(randint(5, 5, {2}))
      .says(ErrorKind::Value,
            "[randint] needs low < high and at most 2^32 numbers between, not 5 and 5");
  MISTAKE(a.item()).says(ErrorKind::Shape,
                         "[item] needs a tensor of one element, not float32[2, 3] on cpu",
                         "take one with x[i], or all with x.to_vector<T>()");
  MISTAKE(scaled_dot_product_attention(a, zeros({2, 4}), a))
      .says(ErrorKind::Shape,
            "[scaled_dot_product_attention] expects query [..., T, d], key [..., S, d] and value "
            "[..., S, e], "
            "not float32[2, 3] "
            "on cpu, float32[2, 4] on cpu and float32[2, 3] on cpu");
}

TEST_CASE("an error inside a composed function names the caller's line") {
  // Here the check that fails is an operator in the library's own source.
  Tensor a = zeros({2, 3}), b = zeros({4});
  MISTAKE(mse_loss(a, zeros({2, 3}, "cpu:1")))
      .says(
          ErrorKind::Device,
          "[mse_loss] operands are on different devices: float32[2, 3] on cpu and float32[2, 3] on "
          "cpu:1",
          "move one of them: the float32[2, 3] with .to(\"cpu\")");
  MISTAKE(layer_norm(a, {3}, zeros({3}, "cpu:1")))
      .says(
          ErrorKind::Device,
          "[layer_norm] operands are on different devices: float32[2, 3] on cpu and float32[3] on "
          "cpu:1",
          "move one of them: the float32[3] with .to(\"cpu\")");
  MISTAKE(a.clamp(0, 1).masked_fill(b > 0, 1))
      .says(ErrorKind::Shape,
            "[where] cannot broadcast bool[4] on cpu with float32[2, 3] on cpu: dim -1 is 4 in the "
            "first and "
            "3 in the second",
            "sizes must be equal or 1, counted from the last dim");
}

constexpr uint32_t kLineInForward = __LINE__ + 6;
struct Net : nn::Module {
  nn::Linear fc1 = add("fc1", nn::Linear(4, 8));
  nn::Linear fc2 = add("fc2", nn::Linear(9, 2));
  Tensor forward(Tensor x) override {
    Tensor hidden = relu(fc1(x));
    return fc2(hidden);  // 8 features, not 9
  }
};

TEST_CASE("layers") {
  nn::Linear fc(4, 5);
  fc.weight().set_name("head.weight");
  Net net;
  nn::Sequential seq(nn::Linear(3, 8), nn::ReLU(), nn::Linear(7, 2));
  Tensor x = zeros({2, 3});
  MISTAKE(fc(x)).says(ErrorKind::Shape,
                      "[linear] the input's last size must be the weight's second: float32[2, 3] "
                      "on cpu against weight "
                      "float32[5, 4] on cpu (head.weight)",
                      "the layer expects inputs of 4 features", "Linear");
  MISTAKE(seq(x)).says(ErrorKind::Shape,
                       "[linear] the input's last size must be the weight's second: float32[2, 8] "
                       "on cpu against weight "
                       "float32[2, 7] on cpu (2.weight)",
                       "the layer expects inputs of 7 features", "2 (Linear) of Sequential");
  // In a module of the user's own the mistake is at the line in its forward().
  try {
    net(zeros({2, 4}));
    FAIL("no error");
  } catch (const Error& e) {
    CHECK(std::string(e.what()).find("(fc2.weight)") != std::string::npos);
    CHECK(std::string(e.where().file).find("errors_test.cpp") != std::string::npos);
    CHECK(e.where().line == kLineInForward);
  }
}

TEST_CASE("labels and indices out of range are refused by the function that was called") {
  Tensor x = ones({2, 3}), one = tensor({0, -1}), line = one.reshape({2, 1});
  x = x + x;  // no constant
  auto refused = [](const char* name, const std::function<Tensor()>& call) {
    CAPTURE(name);
    std::string text;
    try {
      call().eval_();
    } catch (const Error& e) {
      CHECK(e.kind() == ErrorKind::Index);
      text = e.what();
    }
    CHECK(text.rfind("[" + std::string(name) + "] ", 0) == 0);
    CHECK(text.find(" -1 is out of range") != std::string::npos);
  };
  refused("cross_entropy", [&] { return cross_entropy(x, one); });
  refused("nll_loss", [&] { return nll_loss(x, one); });
  refused("embedding", [&] { return embedding(x, one); });
  refused("gather", [&] { return gather(x, 1, line); });
  refused("index_select", [&] { return index_select(x, 0, one); });
  refused("scatter", [&] { return scatter(x, 1, line, 1.0); });
  refused("scatter_add", [&] { return scatter_add(x, 1, line, ones({2, 1})); });
  refused("one_hot", [&] { return one_hot(one, 3); });
  CHECK_THROWS_AS(gather(zeros({3}), 0, tensor({5})).eval_(), Error);
  CHECK(take(x, tensor({-1})).item() == 2);
  CHECK(Tensor(x[tensor({-1})]).sum().item() == 6);
  CHECK_THROWS_AS((tensor({1}) % tensor({0})).eval_(), Error);
  CHECK_THROWS_AS(floor_divide(tensor({1}), 0), Error);
}

TEST_CASE("a bad index found while running") {
  Tensor table = rand({5, 3}), p = tensor({1.0, 2.0}), bad;
  Tensor kept = table * 2;
  const int line = __LINE__ + 1;
  bad = embedding(table, tensor({1, 7}));
  p += bad[{0, 0}];
  std::string first;
  try {
    bad.eval_();
  } catch (const Error& e) {
    first = e.what();
    CHECK(e.kind() == ErrorKind::Index);
  }
  CHECK(first == "[embedding] index 7 is out of range for a dimension of size 5\n  at " +
                     std::string(__FILE__) + ":" + std::to_string(line) +
                     "\n  fix: indices must be in [0, 5)");
  // What had no part in it is there; what was assigned is what it was; the bad value says why it is
  // missing.
  CHECK(kept.sum().item() == doctest::Approx(2 * table.sum().item()));
  CHECK(p.to_vector<float>() == std::vector<float>{1, 2});
  CHECK_THROWS_AS(bad.eval_(), Error);
  CHECK_THROWS_AS(bad + 1, Error);
  CHECK(embedding(table, tensor({1, 4})).sum().item() > 0);
}
