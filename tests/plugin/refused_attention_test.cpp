// Attention on the fake CUDA machine with a cuDNN that takes it, and with ones that refuse it when
// it is planned or run though their form is one that cuDNN has: it is then decomposed, and right.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "compile/executor.h"
#include "ingot/ingot.h"
#include "plugin/fake_setup.h"

using namespace ingot;

namespace {

struct Machine : test::FakeMachine {
  Machine() : FakeMachine("refused") {
    setenv("INGOT_CUDNN", FAKE_CUDA, 1);
    find(executed, "fake_cudnn_executed");
  }
  int (*executed)();
};
Machine machine;

struct Form {
  const char* name;
  bool causal, mask, packed;
};
const Form forms[] = {
    {"plain", false, false, false}, {"causal", true, false, true}, {"mask", false, true, false}};

// cuDNN is asked once for each problem of a process: sizes distinguish the cases.
struct Case {
  int64_t B = 2, H = 2, T, D = 16;
  Tensor q, k, v, g, mask;
  explicit Case(int64_t length) : T(length) {
    Generator gen(7);
    auto some = [&](const Dims& shape) { return randn(shape, {}, gen).to(bfloat16).eval_(); };
    q = some({B, H, T, D}), k = some({B, H, T, D}), v = some({B, H, T, D}), g = some({B, H, T, D});
    mask = some({1, H, T, T});
  }

  /// o, dq, dk, dv as float64.
  std::vector<Tensor> run(const Form& f, const Device& d, DType t,
                          Explanation* plan = nullptr) const {
    Tensor a = q.to(d).to(t), b = k.to(d).to(t), c = v.to(d).to(t), up = g.to(d).to(t),
           m = mask.to(d).to(t);
    if (f.packed) {  // thirds of one buffer, as a projection gives them
      Tensor all = cat({a.transpose(1, 2), b.transpose(1, 2), c.transpose(1, 2)}, 2).eval_();
      Tensor* const parts[] = {&a, &b, &c};
      for (int i = 0; i < 3; ++i) *parts[i] = all.narrow(2, i * H, H).transpose(1, 2);
    }
    for (Tensor* x : {&a, &b, &c}) *x = x->detach().requires_grad_();
    AttentionOptions o;
    o.is_causal = f.causal;
    if (f.mask) o.mask = m;
    Tensor y = scaled_dot_product_attention(a, b, c, o);
    std::vector<Tensor> all{y};
    for (const Tensor& x : grad({y}, {a, b, c}, {up})) all.push_back(x);
    if (plan) *plan = explain(all);
    for (Tensor& x : all) x = x.to("cpu").to(float64).eval_();
    return all;
  }
};

double distance(const Tensor& a, const Tensor& b) {
  return std::sqrt(((a - b) * (a - b)).sum().item() / (b * b).sum().item());
}

int64_t count(const Explanation& plan, const char* kernel) {
  return std::count(plan.kernels.begin(), plan.kernels.end(), kernel);
}

void agrees(const Case& c, const Form& f, Explanation* plan) {
  CAPTURE(std::string(f.name));
  const std::vector<Tensor> want = c.run(f, Device("cpu"), float64),
                            got = c.run(f, Device("cuda"), bfloat16, plan);
  for (size_t i = 0; i < want.size(); ++i) {
    CAPTURE(i);
    CHECK(distance(got[i], want[i]) < 1e-2);
  }
}

}  // namespace

TEST_CASE("cuDNN's attention, forward and backward") {
  unsetenv("FAKE_CUDNN");
  const Case c(24);
  for (const Form& f : forms) {
    const int before = machine.executed();
    Explanation plan;
    agrees(c, f, &plan);
    CAPTURE(plan.text);
    CHECK(count(plan, "attention") == 1);
    CHECK(count(plan, "attention_grad") == 1);
    CHECK(machine.executed() - before == 4);  // one to see that it runs, and one for the result
  }
}

TEST_CASE("attention that cuDNN has no engine for, or does not run, is decomposed") {
  for (const char* how : {"engines", "execute"}) {
    CAPTURE(std::string(how));
    setenv("FAKE_CUDNN", how, 1);
    const Case c(how[1] == 'n' ? 32 : 40);
    for (const Form& f : forms) {
      const int before = machine.executed();
      Explanation plan;
      agrees(c, f, &plan);
      CAPTURE(plan.text);
      CHECK(count(plan, "attention") == 0);
      CHECK(count(plan, "attention_grad") == 0);
      CHECK(count(plan, "matmul") >= 6);
      CHECK(machine.executed() == before);
    }
    // Without a gradient as well, and again: the plan is there now.
    NoGrad guard;
    const PlanStats stats = plan_stats();
    for (int i = 0; i < 3; ++i) {
      Tensor q = c.q.to("cuda"), k = c.k.to("cuda"), v = c.v.to("cuda");
      eval({q, k, v});
      Tensor y = scaled_dot_product_attention(q, k, v);
      CHECK(y.to("cpu").to(float64).isfinite().all().item() == 1);
    }
    CHECK(plan_stats().compiled - stats.compiled <= 4);
  }
  unsetenv("FAKE_CUDNN");
}

TEST_CASE("a gradient that cuDNN refuses is decomposed after a forward pass that it runs") {
  setenv("FAKE_CUDNN", "gradients", 1);
  const Case c(48);
  for (const Form& f : forms) {
    const int before = machine.executed();
    Explanation plan;
    agrees(c, f, &plan);
    CAPTURE(plan.text);
    CHECK(count(plan, "attention") == 1);
    CHECK(count(plan, "attention_grad") == 0);
    CHECK(machine.executed() - before == 2);
  }
  unsetenv("FAKE_CUDNN");
}

TEST_CASE("gradients that are written side by side, taken and refused") {
  auto run = [](const Case& c, const Device& d, DType t, Explanation* plan) {
    auto part = [&](const Tensor& x) { return x.transpose(1, 2).reshape({c.B, c.T, c.H * c.D}); };
    Tensor all = cat({part(c.q), part(c.k), part(c.v)}, 2).to(d).to(t).eval_(), heads[3];
    all.requires_grad_();
    for (int i = 0; i < 3; ++i)
      heads[i] =
          all.narrow(2, i * c.H * c.D, c.H * c.D).reshape({c.B, c.T, c.H, c.D}).transpose(1, 2);
    Tensor y = scaled_dot_product_attention(heads[0], heads[1], heads[2], {.is_causal = true});
    Tensor got = grad({y}, {all}, {c.g.to(d).to(t)})[0];
    for (Tensor& h : heads) h = Tensor();
    y = Tensor();
    if (plan) *plan = explain(got);
    return got.to("cpu").to(float64).eval_();
  };
  for (bool taken : {true, false}) {
    CAPTURE(taken);
    setenv("FAKE_CUDNN", taken ? "nothing" : "gradients", 1);
    const Case c(taken ? 64 : 72);
    Explanation plan;
    const Tensor got = run(c, Device("cuda"), bfloat16, &plan),
                 want = run(c, Device("cpu"), float64, nullptr);
    CHECK(distance(got, want) < 1e-2);
    CAPTURE(plan.text);
    CHECK(count(plan, "attention_grad") == (taken ? 1 : 0));
    if (taken) CHECK(count(plan, "pad") == 0);
  }
  unsetenv("FAKE_CUDNN");
}

TEST_CASE("operands in a layout that cuDNN does not take are copied") {
  const Case c(56);
  NoGrad guard;
  auto run = [&](const Device& d, DType t) {
    // The head's elements are T apart.
    Tensor q = c.q.to(d).to(t).transpose(2, 3).contiguous().eval_().transpose(2, 3),
           k = c.k.to(d).to(t).eval_(), v = c.v.to(d).to(t).eval_();
    return scaled_dot_product_attention(q, k, v).to("cpu").to(float64).eval_();
  };
  const int before = machine.executed();
  CHECK(distance(run(Device("cuda"), bfloat16), run(Device("cpu"), float64)) < 1e-2);
  CHECK(machine.executed() - before == 2);
}
