// Planted mistakes in the functions of elementwise.h, activation.h, movement.h, creation.h and the
// in-place forms: kind, op, what is said and the user's line.
#include <doctest/doctest.h>
#include <ingot/ingot.h>

#include <string>

using namespace ingot;

namespace {

template <class F>
void expect(F&& mistake, ErrorKind kind, const std::string& start, int line) {
  INFO(start);
  try {
    mistake();
  } catch (const Error& e) {
    CHECK(e.kind() == kind);
    CHECK_MESSAGE(std::string(e.what()).rfind(start, 0) == 0, std::string(e.what()));
    CHECK_MESSAGE(std::string(e.what()).find("\n  at " + std::string(__FILE__) + ":" +
                                             std::to_string(line)) != std::string::npos,
                  std::string(e.what()));
    return;
  }
  FAIL_CHECK("nothing was thrown");
}

}  // namespace

// NOLINTNEXTLINE(bugprone-macro-parentheses)
#define MISTAKE(kind, start, ...) \
  expect([&] { (void)(__VA_ARGS__); }, ErrorKind::kind, start, __LINE__)

TEST_CASE("elementwise functions") {
  Tensor x = zeros({2, 3}), i = zeros({2, 3}, int64), u;
  MISTAKE(Shape, "[hypot] cannot broadcast float32[2, 3] on cpu with float32[4] on cpu",
          hypot(x, zeros({4})));
  MISTAKE(Shape, "[copysign] cannot broadcast", copysign(x, zeros({4})));
  MISTAKE(State, "[erfinv] a tensor is undefined", erfinv(u));
  MISTAKE(State, "[lerp] a tensor is undefined", lerp(x, u, 0.5));
  MISTAKE(State, "[xlogy] a tensor is undefined", xlogy(x, u));
  MISTAKE(Value, "[polygamma] the order cannot be negative: -1", polygamma(-1, x));
  MISTAKE(DType, "[frac] needs a floating type, not int64[2, 3] on cpu", frac(i));
  MISTAKE(DType, "[logaddexp] needs a floating type, not int64[2, 3] on cpu", logaddexp(i, i));
  MISTAKE(DType, "[add] alpha must be an integer for integer tensors, not 0.5", add(i, i, 0.5));
  MISTAKE(Value, "[div] rounding_mode is \"up\"", div(x, x, "up"));
  MISTAKE(Value, "[isclose] rtol and atol cannot be negative: -1 and 0", isclose(x, x, -1, 0));
  MISTAKE(DType, "[isclose] operands differ in type: float32[2, 3] on cpu and int64[2, 3] on cpu",
          isclose(x, i));
  MISTAKE(DType, "[lerp] needs a floating type", lerp(i, i, 0.5));
  MISTAKE(DType, "[lerp] start, end and weight differ in type", lerp(x, x.to(float64), 0.5));
  MISTAKE(DType, "[addcdiv] does not divide integers", addcdiv(x, i, i));
  MISTAKE(DType, "[addcmul] value must be an integer for integer tensors, not 0.5",
          addcmul(i, i, i, 0.5));
  MISTAKE(Shape, "[mul] cannot broadcast", addcmul(x, x, zeros({4})));
}

TEST_CASE("activations") {
  Tensor x = zeros({2, 3}), i = zeros({2, 3}, int64);
  MISTAKE(DType, "[elu] needs a floating type, not int64[2, 3] on cpu", elu(i));
  MISTAKE(DType, "[mish] needs a floating type", mish(i));
  MISTAKE(DType, "[relu6] needs a floating type", relu6(i));
  MISTAKE(Value, "[hardtanh] min_val 2 is above max_val 1", hardtanh(x, 2, 1));
  MISTAKE(Shape,
          "[prelu] the weight must have one element or 3, the channels (dim 1) of float32[2, 3] on "
          "cpu, not "
          "float32[4] on cpu",
          prelu(x, zeros({4})));
  MISTAKE(Value, "[rrelu] lower 0.5 is above upper 0.1", rrelu(x, 0.5, 0.1));
  MISTAKE(Value, "[celu] alpha cannot be 0", celu(x, 0));
  MISTAKE(Value, "[softshrink] lambd cannot be negative: -1", softshrink(x, -1));
  MISTAKE(Shape, "[glu] dim 1 of float32[2, 3] on cpu has 3 elements, which is no even number",
          glu(x));
  MISTAKE(Dim, "[swiglu] a 0-d tensor cannot be halved", swiglu(zeros({})));
  MISTAKE(Value, "[gumbel_softmax] tau must be positive, not 0", gumbel_softmax(x, 0));
  MISTAKE(Dim, "[softmax] dim 5 is outside", softmin(x, 5));
}

TEST_CASE("movement") {
  Tensor x = zeros({2, 3}), v = zeros({3});
  MISTAKE(
      Shape,
      "[unflatten] sizes [2, 2] do not make up dim 1 of float32[2, 3] on cpu, which has 3 elements",
      unflatten(x, 1, {2, 2}));
  MISTAKE(Dim, "[movedim] a dim is named twice", movedim(x, {0, 0}, {0, 1}));
  MISTAKE(Dim, "[movedim] source [0] and destination [0, 1] differ in length",
          movedim(x, Dims{0}, {0, 1}));
  MISTAKE(Dim, "[movedim] dim 5 is outside", movedim(x, 5, 0));
  MISTAKE(Dim, "[mT] takes a matrix or a batch of them, not float32[3] on cpu", mT(v));
  MISTAKE(Dim, "[fliplr] needs at least 2 dims, not float32[3] on cpu", fliplr(v));
  MISTAKE(Dim, "[rot90] dims [1, 1] are the same", rot90(x, 1, {1, 1}));
  MISTAKE(Dim, "[unbind] a 0-d tensor has no dims", unbind(zeros({})));
  MISTAKE(Value, "[tensor_split] needs at least 1 section, not 0", tensor_split(x, 0));
  MISTAKE(Shape, "[broadcast_tensors] float32[4] on cpu does not broadcast with [2, 3]",
          broadcast_tensors({x, zeros({4})}));
  MISTAKE(Dim, "[diagonal] needs two different dims, not 0 and 0", diagonal(x, 0, 0, 0));
  MISTAKE(Dim, "[diag] takes a vector or a matrix, not float32[2, 3, 4] on cpu",
          diag(zeros({2, 3, 4})));
  MISTAKE(Dim, "[diag_embed] needs a vector and two different dims", diag_embed(x, 0, 1, 1));
  MISTAKE(Value, "[hstack] was given no tensors", hstack({}));
  MISTAKE(Shape, "[cat] sizes must agree but for dim 0", vstack({x, zeros({4})}));
  MISTAKE(Dim, "[block_diag] takes matrices, vectors and 0-d tensors",
          block_diag({zeros({2, 2, 2})}));
  MISTAKE(Value, "[repeat] cannot repeat a negative number of times", tile(x, {-1}));
  MISTAKE(Value, "[repeat_interleave] cannot repeat a negative number of times: -2",
          repeat_interleave(x, -2));
  MISTAKE(Shape,
          "[repeat_interleave] repeats must be one integer for each of the 3 slices of dim 1",
          repeat_interleave(x, tensor({1, 2}), 1));
  MISTAKE(DType, "[repeat_interleave] repeats must be one integer",
          repeat_interleave(x, tensor({1.0, 2.0}), 0));
  MISTAKE(Value, "[roll] needs one shift per dim: [1, 2] for dims [0]", roll(x, {1, 2}, {0}));
  MISTAKE(Value, "[pad] mode is \"mirror\"", pad(x, {1, 1}, "mirror"));
  MISTAKE(Value,
          "[pad] \"reflect\" cannot add 3 to dim 1 of float32[2, 3] on cpu, which has 3 elements",
          pad(x, {3, 0}, "reflect"));
  MISTAKE(Value, "[pad] \"circular\" cannot add 4 to dim 1", pad(x, {0, 4}, "circular"));
  MISTAKE(Value, "[pad] padding [1] must hold {before, after}", pad(x, Dims{1}, "reflect"));
}

TEST_CASE("creation") {
  MISTAKE(Value, "[logspace] the number of steps cannot be negative: -1", logspace(0, 1, -1));
  MISTAKE(Shape, "[tri] a size cannot be negative: [-1, -1]", tri(-1));
  MISTAKE(Value, "[meshgrid] indexing is \"yx\"", meshgrid({zeros({2})}, "yx"));
  MISTAKE(Value, "[meshgrid] was given no tensors", meshgrid({}));
  MISTAKE(Shape, "[meshgrid] takes vectors and 0-d tensors, not float32[2, 2] on cpu",
          meshgrid({zeros({2, 2})}));
  MISTAKE(Value, "[tensor_split] 10000000 sections of dim 0 of float32[4] on cpu",
          zeros({4}).tensor_split(10000000));
  MISTAKE(Value, "[polygamma] the order is at most 10000, not 2147483648",
          polygamma(int64_t{1} << 31, zeros({2})));
  MISTAKE(Value, "[interpolate] size [9223372036854775807] must be at most 2^40",
          interpolate(zeros({1, 1, 2}), {.size = INT64_MAX}));
  MISTAKE(Value, "[unfold] windows of 5 elements every 1 do not fit into dim 0",
          zeros({4}).unfold(0, 5, 1));
  MISTAKE(Value, "[bernoulli] all elements should be between 0 and 1, but one is not",
          bernoulli(full({2}, 1.5)).eval_());
  MISTAKE(Value, "[normal] std has a negative element",
          normal(zeros({2}), full({2}, -1.0)).eval_());
  MISTAKE(Value, "[uniform] from 2 is above to 1", uniform(2, 1, {3}));
  MISTAKE(DType, "[uniform] makes floating numbers, not int64", uniform(0, 1, {3}, int64));
  MISTAKE(Value, "[normal] the standard deviation cannot be negative: -1", normal(0, -1, {3}));
  MISTAKE(DType, "[normal] needs a floating type", normal(zeros({2}, int64), 1.0));
  MISTAKE(Shape, "[normal] mean float32[2] on cpu and std float32[3] on cpu do not broadcast",
          normal(zeros({2}), ones({3})));
  MISTAKE(Value, "[randint] needs low < high", randint_like(zeros({2}), 3, 3));
}

TEST_CASE("permutations and draws") {
  MISTAKE(Value, "[randperm] n cannot be negative: -1", randperm(-1));
  MISTAKE(Value, "[multinomial] cannot draw 4 of 3 without replacement", multinomial(ones({3}), 4));
  MISTAKE(DType, "[multinomial] needs a floating type", multinomial(ones({3}, int64), 1));
  MISTAKE(Shape, "[multinomial] takes weights [C] or [N, C], not float32[2, 2, 2] on cpu",
          multinomial(ones({2, 2, 2}), 1));
  Tensor p = randperm(1000, {}, Generator(1)), again = randperm(1000, {}, Generator(1)),
         other = randperm(1000, {}, Generator(2));
  CHECK(sort(p).values.equal(arange(1000)));
  CHECK(p.equal(again));
  CHECK_FALSE(p.equal(other));
  CHECK(randperm(0).shape() == Dims{0});
  CHECK(randperm(5, int32).dtype() == int32);
  Tensor w = tensor({1.0, 0.0, 3.0, 4.0});
  Tensor drawn = multinomial(w, 40000, true, Generator(3)),
         share = bincount(drawn, {}, 4).to(float32) / 40000;
  CHECK(share.allclose(w / 8, 0, 0.01));
  CHECK(share[1].item() == 0);
  Tensor rows = multinomial(w.expand({2000, 4}), 3, false, Generator(4));
  CHECK(sort(rows, 1).values.equal(
      tensor({0, 2, 3}).expand({2000, 3})));  // all that can be drawn, each once
  CHECK((rows[{Slice{}, 0}] == 3).to(float32).mean().item() == doctest::Approx(0.5).epsilon(0.08));
}

TEST_CASE("in place") {
  Tensor x = zeros({2, 3}), i = zeros({2, 3}, int64), leaf = zeros({2});
  leaf.requires_grad_();
  MISTAKE(DType, "[exp_] the result is float32 and does not go into int64[2, 3] on cpu", i.exp_());
  MISTAKE(DType, "[sqrt_] the result is float32", sqrt_(i));
  MISTAKE(DType, "[pow_] the result is float32", i.pow_(0.5));
  MISTAKE(Shape, "[hypot_] float32[2, 2, 3] on cpu does not fit into float32[2, 3] on cpu",
          x.hypot_(zeros({2, 1, 3})));
  MISTAKE(Autograd, "[tanh_] a leaf that requires gradients is changed in place", leaf.tanh_());
  MISTAKE(Autograd, "[uniform_] a leaf that requires gradients", leaf.uniform_());
  MISTAKE(Shape, "[fill_] takes a number or a 0-d tensor, not float32[2] on cpu",
          x.fill_(zeros({2})));
  MISTAKE(Dim, "[fill_diagonal_] takes a matrix, not float32[2] on cpu",
          zeros({2}).fill_diagonal_(1));
  MISTAKE(Value, "[exponential_] lambd must be positive, not 0", x.exponential_(0));
  MISTAKE(State, "[exp_] several elements of the view", x.expand({4, 2, 3}).exp_());
  MISTAKE(DType, "[masked_fill] the mask must be bool", x.masked_fill_(i, 1));
}

TEST_CASE("losses") {
  Tensor x = zeros({2, 3}), v = zeros({4}), i = zeros({2, 3}, int64);
  MISTAKE(Value, "[l1_loss] reduction is \"all\"", l1_loss(x, x, "all"));
  MISTAKE(Shape, "[l1_loss] operands differ in shape: float32[2, 3] on cpu and float32[4] on cpu",
          l1_loss(x, v));
  MISTAKE(DType, "[huber_loss] needs floating types, not int64[2, 3] on cpu", huber_loss(i, i));
  MISTAKE(State, "[kl_div] a tensor is undefined", kl_div(x, Tensor()));
  MISTAKE(Value, "[smooth_l1_loss] beta cannot be negative: -1", smooth_l1_loss(x, x, "mean", -1));
  MISTAKE(Value, "[huber_loss] delta must be positive, not 0", huber_loss(x, x, "mean", 0));
  MISTAKE(Shape, "[binary_cross_entropy] operands differ in shape", binary_cross_entropy(x, x, v));
  MISTAKE(Shape, "[binary_cross_entropy_with_logits] operands differ in shape",
          binary_cross_entropy_with_logits(x, v));
  MISTAKE(Shape,
          "[gaussian_nll_loss] var float32[4] on cpu does not fit input float32[2, 3] on cpu",
          gaussian_nll_loss(x, x, v));
  MISTAKE(Shape, "[cosine_embedding_loss] a target of float32[2, 3] on cpu does not go with inputs",
          cosine_embedding_loss(x, x, x));
  MISTAKE(Shape, "[triplet_margin_loss] operands differ in shape", triplet_margin_loss(x, x, v));
  MISTAKE(Shape,
          "[cross_entropy] the weight must be floating, one number for each of the 3 classes, not "
          "float32[4] "
          "on cpu",
          cross_entropy(x, zeros({2}, int64), {.weight = v}));
  MISTAKE(DType, "[nll_loss] the weight must be floating",
          nll_loss(x, zeros({2}, int64), {.weight = zeros({3}, int64)}));
  MISTAKE(DType, "[nll_loss] the target holds class numbers", nll_loss(x, x));
  MISTAKE(Shape, "[cdist] needs rows of the same size", cdist(x, zeros({2, 4})));
  MISTAKE(Value, "[cdist] p cannot be negative: -1", cdist(x, x, -1));
  MISTAKE(DType, "[normalize] needs a floating type", normalize(i));
  MISTAKE(Dim, "[normalize] dim 7 is outside", normalize(x, 2, 7));
  MISTAKE(Dim, "[cosine_similarity] dim 3 is outside", cosine_similarity(x, x, 3));
}

TEST_CASE("linear algebra") {
  Tensor a = zeros({2, 3}), b = zeros({3, 4}), v = zeros({3}), s = eye(3), i = eye(3, {}, int64);
  MISTAKE(Shape, "[mm] takes matrices, not float32[3] on cpu", mm(a, v));
  MISTAKE(Shape, "[bmm] takes batches of matrices, not float32[2, 3] on cpu", bmm(a, b));
  MISTAKE(Shape, "[bmm] the batches differ in size", bmm(zeros({2, 3, 4}), zeros({3, 4, 5})));
  MISTAKE(Shape, "[mv] takes a matrix and a vector, not float32[3, 4] on cpu", mv(a, b));
  MISTAKE(Shape, "[matmul] inner sizes differ", dot(v, zeros({4})));
  MISTAKE(Shape, "[outer] takes two vectors", outer(a, v));
  MISTAKE(Shape, "[cross] dim -1 of float32[3, 4] on cpu", cross(b, b));
  MISTAKE(Shape, "[addmm] float32[5] on cpu does not broadcast to the product's shape [2, 4]",
          addmm(zeros({5}), a, b));
  MISTAKE(DType, "[addmm] operands differ in type", addmm(zeros({4}, float64), a, b));
  MISTAKE(DType, "[addmm] beta and alpha must be integers", addmm(i, i, i, 0.5));
  MISTAKE(Shape, "[tensordot] dims [0] of float32[2, 3] on cpu do not pair with dims [0]",
          tensordot(a, b, Dims{0}, Dims{0}));
  MISTAKE(Shape, "[tensordot] cannot sum over 3 dims", tensordot(a, b, 3));
  MISTAKE(Value, "[einsum] \"ij,jk\": has more parts than there are operands",
          einsum("ij,jk", {a}));
  MISTAKE(Value, "[einsum] \"ij\": has fewer parts than there are operands", einsum("ij", {a, b}));
  MISTAKE(Value, "[einsum] \"i1->i\": '1' is not the label of a dim", einsum("i1->i", {a}));
  MISTAKE(Value, "[einsum] \"ijk->i\": \"ijk\" does not name the dims of float32[2, 3] on cpu",
          einsum("ijk->i", {a}));
  MISTAKE(Value, "[einsum] \"ij->k\": a letter of the result is in no operand",
          einsum("ij->k", {a}));
  MISTAKE(Value, "[einsum] \"ij->ii\": a letter occurs twice in the result", einsum("ij->ii", {a}));
  MISTAKE(Shape, "[einsum] \"ij,ij->ij\": a letter stands for 2 and for 3 in float32[3, 4] on cpu",
          einsum("ij,ij->ij", {a, b}));
  MISTAKE(Value, "[einsum] was given no tensors", einsum("->", {}));
  MISTAKE(Value, "[multi_dot] needs at least two tensors, not 1", multi_dot({a}));
  MISTAKE(Shape, "[trace] takes a matrix, not float32[3] on cpu", trace(v));
  MISTAKE(Shape, "[matrix_power] takes square matrices, not float32[2, 3] on cpu",
          matrix_power(a, 2));
  MISTAKE(Shape, "[inv] takes square matrices, not float32[2, 3] on cpu", inv(a));
  MISTAKE(DType, "[det] takes float32 and float64, not int64[3, 3] on cpu", det(i));
  MISTAKE(DType, "[cholesky] takes float32 and float64, not float16[3, 3] on cpu",
          cholesky(s.to(float16)));
  MISTAKE(Shape, "[solve] float32[3, 3] on cpu and float32[4] on cpu do not fit",
          solve(s, zeros({4})));
  MISTAKE(DType, "[solve] operands differ in type", solve(s, v.to(float64)));
  MISTAKE(Device, "[solve_triangular] operands are on different devices",
          solve_triangular(s, v.to("cpu:1"), true));
}

TEST_CASE("matrices that cannot be solved are named when the value is computed") {
  Tensor zero = zeros({2, 2}), bad = stack({eye(2), zero});
  int line = __LINE__ + 1;
  Tensor x = solve(bad, ones({2, 2, 1}));
  expect([&] { x.eval_(); }, ErrorKind::Value, "[solve] matrix 1 is singular: pivot 1 is 0", line);
  line = __LINE__ + 1;
  Tensor y = inv(zero);
  expect([&] { y.eval_(); }, ErrorKind::Value, "[inv] matrix 0 is singular", line);
  line = __LINE__ + 1;
  Tensor l = cholesky(-eye(60));
  expect([&] { l.eval_(); }, ErrorKind::Value,
         "[cholesky] matrix 0 is not positive definite: its leading minor of order 1 is not", line);
  // A failed run changes nothing.
  Tensor w = ones({2, 2});
  w.eval_();
  w += inv(zero);
  CHECK_THROWS_AS(w.eval_(), Error);
  CHECK(w.equal(ones({2, 2})));
  CHECK(det(zero).item() == 0);
}

TEST_CASE("large factorisations agree with their definition") {
  manual_seed(5);
  for (DType t : {float32, float64}) {
    double tol = t == float32 ? 2e-3 : 1e-9;
    for (int64_t n : {3, 47, 49, 130}) {
      Tensor a = randn({n, n}, t) + eye(n, {}, t) * 4.0, b = randn({n, 5}, t),
             p = matmul(a, a.t()) + eye(n, {}, t);
      CHECK(allclose(matmul(a, solve(a, b)), b, tol, tol));
      CHECK(allclose(matmul(a, inv(a)), eye(n, {}, t), tol, tol));
      Tensor l = cholesky(p);
      CHECK(allclose(matmul(l, l.t()), p, tol, tol * static_cast<double>(n)));
      CHECK(allclose(l, l.tril()));
      CHECK(allclose(matmul(a.triu(), solve_triangular(a, b, true)), b, tol, tol * 10));
      CHECK(allclose(matmul(solve_triangular(a, b.t(), false, false), a.tril()), b.t(), tol,
                     tol * 10));
      SignLogdet d = slogdet(matmul(a, a));
      CHECK(d.sign.item() == 1);
      CHECK(d.logabsdet.item() == doctest::Approx(2 * slogdet(a).logabsdet.item()).epsilon(1e-3));
    }
  }
}

TEST_CASE("the in-place forms write where they should") {
  Tensor x = arange(6, float32).reshape({2, 3}), same = x, row = x[1];
  CHECK(&x.exp_() == &x);
  CHECK(same.equal(x));
  CHECK(same[{0, 1}].item() == doctest::Approx(2.718281828));
  Tensor y = zeros({3, 3});
  y.diagonal(1).fill_(2);
  CHECK(y.to_vector<int>() == std::vector<int>{0, 2, 0, 0, 0, 2, 0, 0, 0});
  y.fill_diagonal_(7);
  CHECK(y.to_vector<int>() == std::vector<int>{7, 2, 0, 0, 7, 2, 0, 0, 7});
  manual_seed(3);
  y.uniform_(2, 3);
  for (float v : y.to_vector<float>()) CHECK((v >= 2 && v < 3));
  Tensor k = zeros({1000}, int64);
  k.random_(-3, 4);
  CHECK(k.min().item<int>() == -3);
  CHECK(k.max().item<int>() == 3);
  Tensor e = empty({20000});
  CHECK(e.exponential_(2).mean().item() == doctest::Approx(0.5).epsilon(0.05));
  CHECK(e.min().item() >= 0);
  CHECK(e.normal_(1, 3).mean().item() == doctest::Approx(1).epsilon(0.1));
  CHECK(e.std().item() == doctest::Approx(3).epsilon(0.05));
  CHECK(e.bernoulli_(0.3).mean().item() == doctest::Approx(0.3).epsilon(0.05));
  CHECK(k.bernoulli_(1.0).sum().item<int>() == 1000);
}

TEST_CASE("comparisons that answer at once") {
  Tensor x = ones({3}), y = x + 1e-9;
  CHECK(allclose(x, y));
  CHECK(x.equal(ones({3})));
  CHECK_FALSE(x.equal(ones({2})));
  CHECK_FALSE(allclose(x, x * 2));
  Tensor n = x / 0 - x / 0;
  CHECK_FALSE(allclose(n, n));
  CHECK(n.allclose(n, 0, 0, true));
}
