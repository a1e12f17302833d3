// How few kernels the usual pieces take, counted on the null device: one row, one count, exact.
#include <doctest/doctest.h>
#include <ingot/ingot.h>

#include "backend/null/null_backend.h"
#include "compile/executor.h"

using namespace ingot;

namespace {

Tensor on_null(const Dims& shape, DType t = float32) { return zeros(shape, {t, "null"}).eval_(); }
Tensor parameter(const Dims& shape) {
  Tensor p = zeros(shape, "null");
  p.eval_();
  p.requires_grad_();
  return p;
}

struct Counts {
  int64_t generated, library, launches;
};
template <class F>
Counts count(F&& fn) {
  reset_null_counts();
  fn();
  NullCounts c = null_counts();
  return {c.generated, c.library, c.launches};
}

struct Block {
  Tensor g1, b1, g2, b2, wqkv, bqkv, wo, bo, wf, bf, wp, bp;
  int64_t B, T, C, H;
  Block(int64_t B_, int64_t T_, int64_t C_, int64_t H_) : B(B_), T(T_), C(C_), H(H_) {
    g1 = parameter({C}), b1 = parameter({C}), g2 = parameter({C}), b2 = parameter({C});
    wqkv = parameter({3 * C, C}), bqkv = parameter({3 * C}), wo = parameter({C, C}),
    bo = parameter({C});
    wf = parameter({4 * C, C}), bf = parameter({4 * C}), wp = parameter({C, 4 * C}),
    bp = parameter({C});
  }
  Tensor forward(const Tensor& x) const {
    Tensor qkv = linear(layer_norm(x, {C}, g1, b1), wqkv, bqkv);
    std::vector<Tensor> parts = qkv.split(C, 2);
    auto heads = [&](const Tensor& t) { return t.view({B, T, H, C / H}).transpose(1, 2); };
    Tensor a = scaled_dot_product_attention(heads(parts[0]), heads(parts[1]), heads(parts[2]),
                                            {.is_causal = true});
    Tensor y = x + linear(a.transpose(1, 2).reshape({B, T, C}), wo, bo);
    return y + linear(gelu(linear(layer_norm(y, {C}, g2, b2), wf, bf), "tanh"), wp, bp);
  }
  std::vector<Tensor> parameters() const {
    return {g1, b1, g2, b2, wqkv, bqkv, wo, bo, wf, bf, wp, bp};
  }
};

}  // namespace

TEST_CASE("a weight's gradient that is asked for is one product, in the layout its reader uses") {
  Tensor x = on_null({128, 32}), w = parameter({64, 32}), g = on_null({128, 64});
  linear(x, w).backward(g);
  Tensor grad = w.grad();
  const Counts c = count([&] { eval({grad}); });
  CHECK(c.library == 1);
  CHECK(c.launches == 1);
}

TEST_CASE("elementwise chains, softmax, norms and losses are one kernel") {
  Tensor x = on_null({4096, 1024});
  Tensor g = on_null({1024}), b = on_null({1024});
  CHECK(count([&] {
          (0.5 * x * (1.0 + tanh(0.79788456 * (x + 0.044715 * pow(x, 3))))).eval_();
        }).generated == 1);
  CHECK(count([&] { softmax(x, 1).eval_(); }).generated == 1);
  CHECK(count([&] { log_softmax(x, 1).eval_(); }).generated == 1);
  CHECK(count([&] { layer_norm(x, {1024}, g, b).eval_(); }).generated == 1);
  CHECK(count([&] { rms_norm(x, {1024}, g).eval_(); }).generated == 1);
  CHECK(count([&] { gelu(x).eval_(); }).generated == 1);
  CHECK(count([&] { softmax(x.to(bfloat16), 1).eval_(); }).generated == 1);
}

TEST_CASE("layer norm backward is at most two kernels") {
  Tensor x = parameter({4096, 768}), g = parameter({768}), b = parameter({768});
  Tensor dy = on_null({4096, 768});
  Tensor y;
  CHECK(count([&] { y = layer_norm(x, {768}, g, b).eval_(); }).generated == 1);
  Counts c = count([&] {
    y.backward(dy);
    eval({x.grad(), g.grad(), b.grad()});
  });
  CHECK(c.generated <= 2);
  CHECK(c.library == 0);
}

TEST_CASE("cross entropy forward and backward read and write the logits once") {
  Tensor logits = parameter({4096, 1000}), target = on_null({4096}, int64);
  Counts c = count([&] {
    Tensor loss = cross_entropy(logits, target);
    loss.backward();
    eval({loss, logits.grad()});
  });
  // Counting the valid targets, which the gradient needs, is one; the rows with their gradient and,
  // as its second stage, their sum are the other (with reduction "sum" the count goes away).
  CHECK(c.generated == 2);
  CHECK(c.launches == 3);
  CHECK(c.library == 0);
  Counts s = count([&] {
    Tensor loss = cross_entropy(logits, target, {.reduction = "sum"});
    Tensor g = grad({loss}, {logits})[0];
    eval({loss, g});
  });
  CHECK(s.generated == 1);
  CHECK(s.launches == 2);
}

TEST_CASE("an optimiser step over many tensors is few launches") {
  std::vector<Tensor> params;
  for (int i = 0; i < 150; ++i) {
    params.push_back(i % 3 == 0 ? parameter({64 + i}) : parameter({32 + i, 64}));
  }
  auto give_gradients = [&] {
    for (Tensor& p : params) p.set_grad(on_null(p.shape()));
  };
  optim::AdamW opt(params, {.lr = 1e-3});
  give_gradients();
  opt.step();
  give_gradients();
  CHECK(count([&] { opt.step(); }).launches <= 2);
  give_gradients();
  Counts c = count([&] { optim::clip_grad_norm_(params, 1.0).eval_(); });
  CHECK(c.generated <= 3);  // the norm in two, the scaling of the gradients in one
}

TEST_CASE("a pre-norm GPT block, attention decomposed") {
  Block block(4, 64, 128, 4);
  Tensor x = on_null({4, 64, 128});
  Counts f = count([&] {
    NoGrad off;
    block.forward(x).eval_();
  });
  CHECK(f.library <= 6);
  CHECK(f.generated <= 5);
  MESSAGE("forward: ", f.library, " library calls, ", f.generated, " generated kernels");
  Tensor xg = parameter({4, 64, 128}), dy = on_null({4, 64, 128});
  Counts fb = count([&] {
    Tensor y = block.forward(xg);
    y.backward(dy);
    std::vector<Tensor> grads{y, xg.grad()};
    for (Tensor& p : block.parameters()) grads.push_back(p.grad());
    eval(grads);
  });
  MESSAGE("forward and backward: ", fb.library, " library calls, ", fb.generated,
          " generated kernels");
  CHECK(fb.library <= 18);
  CHECK(fb.generated <= 16);
}
