// Cases of loss.h and linalg.h.
#include <cmath>
#include <functional>
#include <tuple>

#include "ops/op_cases.h"

namespace ingot::check {
namespace {

using List = std::vector<Tensor>;
using T = const Tensor&;

Function one(std::function<Tensor(T)> f) {
  return [f](const List& x) { return List{f(x[0])}; };
}
Function two(std::function<Tensor(T, T)> f) {
  return [f](const List& x) { return List{f(x[0], x[1])}; };
}
Function three(std::function<Tensor(T, T, T)> f) {
  return [f](const List& x) { return List{f(x[0], x[1], x[2])}; };
}

void add_losses(std::vector<Case>& c) {
  for (const char* how : {"mean", "sum", "none"}) {
    auto push = [&](const char* name, std::vector<In> in, Function f, double slack = 8) {
      c.push_back(
          {std::string(name) + " " + how, std::move(in), std::move(f), Types::Float, true, slack});
    };
    const In any{{3, 4}}, prob{{3, 4}, 0.1, 0.9}, row{{4}, 0.2, 1.5};
    push("l1_loss", {any, {{3, 4}, 2.1, 3}}, two([how](T x, T y) { return l1_loss(x, y, how); }));
    push("smooth_l1_loss", {{{3, 4}, -3, -2.6}, {{3, 4}, -2, 2}},
         two([how](T x, T y) { return smooth_l1_loss(x, y, how, 2.5); }));
    push("smooth_l1_loss near", {{{3, 4}, 0, 0.4}, {{3, 4}, 0, 0.4}},
         two([how](T x, T y) { return smooth_l1_loss(x, y, how); }));
    push("huber_loss", {{{3, 4}, -3, -2.6}, {{3, 4}, -2, 2}},
         two([how](T x, T y) { return huber_loss(x, y, how, 2.5); }));
    push("binary_cross_entropy", {prob, prob, row},
         three([how](T x, T y, T w) { return binary_cross_entropy(x, y, w, how); }));
    push("binary_cross_entropy_with_logits", {any, prob, row}, three([how](T x, T y, T w) {
           return binary_cross_entropy_with_logits(x, y, {}, how) +
                  binary_cross_entropy_with_logits(x, y, w, how, w * 2.0);
         }),
         16);
    push("kl_div", {{{3, 4}, -3, -0.1}, prob},
         two([how](T x, T y) { return kl_div(x, y, how) + kl_div(x, log(y), how, true); }), 16);
    push("hinge_embedding_loss", {{{3, 4}, 0.1, 0.9}, {{3, 4}, 0, 1, bool_}}, two([how](T x, T b) {
           return hinge_embedding_loss(x, b.to(x.dtype()) * 2.0 - 1.0, 1, how);
         }));
    push("margin_ranking_loss", {{{5}}, {{5}}, {{5}, 0, 1, bool_}}, three([how](T x, T y, T b) {
           return margin_ranking_loss(x, y, b.to(x.dtype()) * 2.0 - 1.0, 0.3, how);
         }));
    push("cosine_embedding_loss", {any, any, {{3}, 0, 1, bool_}}, three([how](T x, T y, T b) {
           return cosine_embedding_loss(x, y, b.to(x.dtype()) * 2.0 - 1.0, 0.2, how);
         }),
         16);
    push("triplet_margin_loss", {any, any, any}, three([how](T a, T p, T n) {
           return triplet_margin_loss(a, p, n, {.margin = 4, .reduction = how}) +
                  triplet_margin_loss(a, p, n,
                                      {.margin = 3, .p = 3, .swap = true, .reduction = how});
         }),
         16);
    push("soft_margin_loss", {any, {{3, 4}, 0, 1, bool_}},
         two([how](T x, T b) { return soft_margin_loss(x, b.to(x.dtype()) * 2.0 - 1.0, how); }));
    push("poisson_nll_loss", {{{3, 4}, 0.2, 1.5}, {{3, 4}, 1.2, 3}}, two([how](T x, T y) {
           return poisson_nll_loss(x, y, {.full = true, .reduction = how}) +
                  poisson_nll_loss(x, y, {.log_input = false, .reduction = how});
         }),
         16);
    push("gaussian_nll_loss", {any, any, {{3, 1}, 0.5, 2}}, three([how](T x, T y, T v) {
           return gaussian_nll_loss(x, y, v, {.full = true, .reduction = how});
         }),
         16);
    push("multilabel_soft_margin_loss", {any, prob, row},
         three([how](T x, T y, T w) { return multilabel_soft_margin_loss(x, y, w, how); }), 16);
    CrossEntropyOptions o;
    o.reduction = how;
    push("cross_entropy weighted", {{{4, 5}}, {{4}, 0, 5, int64}, {{5}, 0.2, 2}},
         three([o](T x, T t, T w) {
           auto p = o;
           p.weight = w;
           p.ignore_index = 2;
           return cross_entropy(x, t, p);
         }));
    push("cross_entropy weighted smoothed", {{{2, 3, 4}}, {{2, 4}, 0, 3, int64}, {{3}, 0.2, 2}},
         three([o](T x, T t, T w) {
           auto p = o;
           p.weight = w;
           p.label_smoothing = 0.2;
           return cross_entropy(x, t, p);
         }));
    push("cross_entropy of probabilities", {{{4, 5}}, {{4, 5}, 0.05, 0.4}, {{5}, 0.2, 2}},
         three([o](T x, T t, T w) {
           auto p = o;
           p.weight = w;
           p.label_smoothing = 0.1;
           return cross_entropy(x, t, p) + cross_entropy(x, t, o);
         }),
         16);
    push("nll_loss weighted", {{{4, 5}}, {{4}, 0, 5, int64}, {{5}, 0.2, 2}},
         three([o](T x, T t, T w) {
           auto p = o;
           p.weight = w;
           return nll_loss(x, t, p);
         }));
  }
  c.push_back({"kl_div batchmean",
               {{{3, 4}, -3, -0.1}, {{3, 4}, 0.1, 0.9}},
               two([](T x, T y) { return kl_div(x, y, "batchmean"); }),
               Types::Float,
               true,
               8});
  c.push_back({"cosine_similarity",
               {{{3, 4}, 0.1, 2}, {{4}, 0.2, 2}},
               two([](T x, T y) { return cosine_similarity(x, y); }),
               Types::Float,
               true,
               8});
  for (double p : {0.0, 1.0, 2.0, 3.0, HUGE_VAL}) {
    c.push_back({"pairwise_distance " + std::to_string(p),
                 {{{3, 4}}, {{3, 4}, 2.2, 3}},
                 two([p](T x, T y) { return pairwise_distance(x, y, p, 1e-6, true); }),
                 Types::Float,
                 true,
                 8});
    c.push_back({"cdist " + std::to_string(p),
                 {{{2, 3, 4}}, {{5, 4}, 2.2, 3}},
                 two([p](T x, T y) { return cdist(x, y, p); }),
                 Types::Float,
                 true,
                 8});
    c.push_back({"normalize " + std::to_string(p),
                 {{{3, 4}, 0.2, 2}},
                 one([p](T x) { return normalize(x, p); }),
                 Types::Float,
                 true,
                 8});
  }
}

void add_linear_algebra(std::vector<Case>& c) {
  auto push = [&](const char* name, std::vector<In> in, Function f, Types types = Types::Float,
                  double slack = 16) {
    c.push_back({name, std::move(in), std::move(f), types, true, slack});
  };
  const In m34{{3, 4}}, m45{{4, 5}}, b234{{2, 3, 4}}, b245{{2, 4, 5}};
  push("mm", {m34, m45}, two([](T a, T b) { return mm(a, b); }));
  push("bmm", {b234, b245}, two([](T a, T b) { return bmm(a, b); }));
  push("mv", {m34, {{4}}}, two([](T a, T b) { return mv(a, b); }));
  push("dot", {{{4}}, {{4}}}, two([](T a, T b) { return dot(a, b) + vdot(a, b); }));
  push("inner", {b234, {{5, 4}}}, two([](T a, T b) { return inner(a, b); }));
  push("outer", {{{3}}, {{4}}}, two([](T a, T b) { return outer(a, b); }), Types::Number);
  push("kron", {{{2, 3}}, {{3}}}, two([](T a, T b) { return kron(a, b); }), Types::Number);
  push("vecdot", {b234, {{4}}}, two([](T a, T b) { return vecdot(a, b); }));
  push("cross", {{{2, 3}}, {{2, 3}}}, two([](T a, T b) { return cross(a, b); }));
  push("addmm", {{{5}}, m34, m45}, three([](T x, T a, T b) {
         return addmm(x, a, b) + addmm(x, a, b, 2.0, 0.5) + addmm(x, a, b, 0);
       }));
  push("addmm of integers", {{{3, 5}}, m34, m45},
       three([](T x, T a, T b) { return addmm(x, a, b, 2, 3); }), Types::Int);
  push("addmv", {{{3}}, m34, {{4}}}, three([](T x, T a, T b) { return addmv(x, a, b, 0.5, 2.0); }));
  push("addr", {{{3, 4}}, {{3}}, {{4}}},
       three([](T x, T a, T b) { return addr(x, a, b, 0.5, 2.0); }));
  push("baddbmm", {{{2, 3, 5}}, b234, b245},
       three([](T x, T a, T b) { return baddbmm(x, a, b, 0.5, 2.0); }));
  push("addbmm", {{{3, 5}}, b234, b245},
       three([](T x, T a, T b) { return addbmm(x, a, b, 0.5, 2.0); }), Types::Float, 32);
  push("tensordot", {b234, {{3, 4, 5}}}, two([](T a, T b) { return tensordot(a, b, 2); }),
       Types::Float, 32);
  push("tensordot of named dims", {b234, {{4, 5, 2}}}, two([](T a, T b) {
         return tensordot(a, b, {0, 2}, {2, 0});
       }),
       Types::Float, 32);
  push("tensordot of none", {{{2, 3}}, {{2}}}, two([](T a, T b) { return tensordot(a, b, 0); }));
  push("multi_dot", {m34, m45, {{5}}}, three([](T a, T b, T d) {
         return multi_dot({a, b, d});
       }),
       Types::Float, 64);
  push("trace", {{{3, 4}}}, one([](T x) { return trace(x); }), Types::Number);
  push("matrix_power", {{{2, 3, 3}}},
       one([](T x) { return matrix_power(x, 3) + matrix_power(x, 0) * x; }), Types::Float, 64);
  const std::vector<std::tuple<const char*, std::vector<In>>> equations = {
      {"ij,jk->ik", {m34, m45}},
      {"ij,jk", {m34, m45}},
      {"bij,bjk->bik", {b234, b245}},
      {"...ij,...jk->...ik", {b234, m45}},
      {"ij->ji", {m34}},
      {"ij->", {m34}},
      {"ii->i", {{{3, 3}}}},
      {"ii", {{{3, 3}}}},
      {"i,j->ij", {{{3}}, {{4}}}},
      {"bi,bj->bij", {{{2, 3}}, {{2, 4}}}},
      {"bi,bi->b", {{{2, 3}}, {{2, 3}}}},
      {"ij,jk,kl->il", {m34, m45, {{5, 2}}}},
      {"bhqd,bhkd->bhqk", {{{2, 2, 3, 4}}, {{2, 2, 5, 4}}}},
      {"iji,jk->k", {{{3, 4, 3}}, m45}},
      {"...d->...", {b234}},
      {"ij,ij->i", {m34, {{1, 4}}}}};
  for (const auto& [text, in] : equations)
    push((std::string("einsum ") + text).c_str(), in,
         [e = text](const List& x) { return List{einsum(e, x)}; }, Types::Float, 64);
}

// Matrices far from singular: a * 0.3 + 3 on the diagonal. float32 and float64 only.
Tensor good(T x) { return x * 0.3 + eye(x.size(-1), {}, {x.dtype(), x.device()}) * 3.0; }
Tensor positive(T x) {
  return matmul(x, x.mT()) + eye(x.size(-2), {}, {x.dtype(), x.device()}) * 2.0;
}
Tensor in64(T x) { return is_half(x.dtype()) ? x.to(float32) : x; }

void add_factorisations(std::vector<Case>& c) {
  auto push = [&](const char* name, std::vector<In> in, std::function<List(const List&)> f) {
    auto wide = [f](const List& x) {
      List y;
      for (T t : x) y.push_back(in64(t));
      return f(y);
    };
    c.push_back({name, std::move(in), wide, Types::Float, true, 64});
  };
  const In m{{4, 4}}, batch{{2, 3, 3}};
  push("inv", {m}, [](const List& x) { return List{inv(good(x[0]))}; });
  push("inv of a batch", {batch}, [](const List& x) {
    return List{inv(good(x[0])), inverse(good(x[0]).mT())};
  });
  push("solve", {m, {{4, 3}}}, [](const List& x) { return List{solve(good(x[0]), x[1])}; });
  push("solve of a vector", {m, {{4}}},
       [](const List& x) { return List{solve(good(x[0]), x[1])}; });
  push("solve of a batch", {batch, {{3, 2}}},
       [](const List& x) { return List{solve(good(x[0]), x[1])}; });
  push("solve of vectors", {batch, {{2, 3}}},
       [](const List& x) { return List{solve(good(x[0]), x[1])}; });
  push("solve from the right", {m, {{3, 4}}},
       [](const List& x) { return List{solve(good(x[0]), x[1], false)}; });
  push("solve with swaps", {{{3, 3}}, {{3, 2}}},
       [](const List& x) { return List{solve(good(x[0]).flip(0), x[1])}; });
  for (bool upper : {false, true})
    for (bool unit : {false, true}) {
      push("solve_triangular", {m, {{4, 2}}}, [=](const List& x) {
        return List{solve_triangular(good(x[0]), x[1], upper, true, unit)};
      });
      push("solve_triangular from the right", {m, {{2, 4}}}, [=](const List& x) {
        return List{solve_triangular(good(x[0]), x[1], upper, false, unit)};
      });
    }
  push("cholesky", {m}, [](const List& x) {
    return List{cholesky(positive(x[0])), cholesky(positive(x[0]), true)};
  });
  push("cholesky of a batch", {batch},
       [](const List& x) { return List{cholesky(positive(x[0]))}; });
  push("cholesky_solve", {m, {{4, 2}}}, [](const List& x) {
    return List{cholesky_solve(x[1], cholesky(positive(x[0]))),
                cholesky_solve(x[1], cholesky(positive(x[0]), true), true)};
  });
  push("det", {m}, [](const List& x) { return List{det(good(x[0])), det(good(x[0]).flip(0))}; });
  push("slogdet", {batch}, [](const List& x) {
    SignLogdet s = slogdet(good(x[0]));
    return List{s.sign, s.logabsdet, logdet(good(x[0]))};
  });
  push("matrix_power of the inverse", {m},
       [](const List& x) { return List{matrix_power(good(x[0]), -2)}; });
  push("empty matrices", {{{0, 0}}, {{2, 0, 0}}, {{0, 3, 3}}}, [](const List& x) {
    return List{det(x[0]), det(x[1]), inv(x[0]), inv(x[2]), det(x[2]), solve(x[2], x[2])};
  });
  push("one by one", {{{1, 1}, 0.5, 2}}, [](const List& x) {
    return List{det(x[0]), inv(x[0]), cholesky(x[0])};
  });
}

}  // namespace

void add_algebra(std::vector<Case>& c) {
  add_losses(c);
  add_linear_algebra(c);
  add_factorisations(c);
}

}  // namespace ingot::check
