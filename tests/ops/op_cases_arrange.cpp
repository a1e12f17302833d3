// Cases of movement.h, creation.h and the in-place forms.
#include <functional>

#include "ops/op_cases.h"

namespace ingot::check {
namespace {

using List = std::vector<Tensor>;
using Unary = std::function<Tensor(const Tensor&)>;

Function one(Unary f) {
  return [f](const List& x) { return List{f(x[0])}; };
}

const std::vector<std::pair<const char*, Unary>> kViews = {
    {"unflatten",
     [](const Tensor& x) {
       return x.unflatten(2, {2, -1});
     }},
    {"movedim", [](const Tensor& x) { return x.movedim(0, -1); }},
    {"movedim of two",
     [](const Tensor& x) {
       return movedim(x, {0, 2}, {1, 0});
     }},
    {"swapaxes", [](const Tensor& x) { return x.swapaxes(0, 2); }},
    {"mT", [](const Tensor& x) { return x.mT(); }},
    {"ravel", [](const Tensor& x) { return x.ravel(); }},
    {"fliplr", [](const Tensor& x) { return x.fliplr(); }},
    {"flipud", [](const Tensor& x) { return x.flipud(); }},
    {"rot90",
     [](const Tensor& x) {
       return x.rot90() + rot90(x, 3, {0, 1}) + rot90(rot90(x, 2, {0, 2}), -1, {0, 1});
     }},
    {"diagonal", [](const Tensor& x) { return x.diagonal(0, 1, 2); }},
    {"diagonal above", [](const Tensor& x) { return x.diagonal(1, 1, 2); }},
    {"diagonal below", [](const Tensor& x) { return x.diagonal(-1, 2, 1); }},
    {"diagonal of other dims", [](const Tensor& x) { return x.diagonal(0, 2, 0); }},
    {"diagonal that is empty", [](const Tensor& x) { return x.diagonal(9, 1, 2); }},
    {"pad reflect",
     [](const Tensor& x) {
       return pad(x, {2, 3, 1, 2}, "reflect");
     }},
    {"pad replicate",
     [](const Tensor& x) {
       return pad(x, {2, 0, 0, 5}, "replicate");
     }},
    {"pad circular",
     [](const Tensor& x) {
       return pad(x, {4, 1, 2, 3}, "circular");
     }},
    {"pad negative",
     [](const Tensor& x) {
       return pad(x, {-1, 2, 1, -1}, "replicate");
     }},
    {"roll of two dims",
     [](const Tensor& x) {
       return x.roll({1, -2}, {0, 2});
     }},
    {"roll flat", [](const Tensor& x) { return x.roll({5}); }},
    {"tile",
     [](const Tensor& x) {
       return x.tile({2, 3});
     }},
    {"repeat_interleave", [](const Tensor& x) { return x.repeat_interleave(3, 1); }},
    {"repeat_interleave flat", [](const Tensor& x) { return x.repeat_interleave(2); }},
    {"diag_embed", [](const Tensor& x) { return x.diag_embed(); }},
    {"diag_embed above", [](const Tensor& x) { return x.diag_embed(2, 0, 2); }},
    {"diag_embed below", [](const Tensor& x) { return x.diag_embed(-1); }},
    {"diagflat",
     [](const Tensor& x) {
       return diagflat(x[{0, Slice{0, 2}, Slice{0, 2}}], 1);
     }},
    {"diag", [](const Tensor& x) { return diag(x[0], 1) + diag(diag(x[0], 1), 0).sum(); }},
};

void add_views(std::vector<Case>& c) {
  for (const auto& [name, f] : kViews) c.push_back({name, {{{2, 3, 4}}}, one(f), Types::Number});
  for (const auto& [name, f] : kViews) {
    Unary view = f;
    c.push_back({std::string(name) + " used", {{{2, 3, 4}}}, one([view](const Tensor& x) {
                   return view(x * 2.0) * view(x) + 1.0;
                 })});
  }
  c.push_back({"repeat_interleave by counts",
               {{{3, 2}}, {{3}, 0, 3, int64}},
               [](const List& x) { return List{x[0].repeat_interleave(x[1], 0)}; },
               Types::Number});
  c.push_back({"squeeze of two", {{{1, 3, 1, 2}}}, one([](const Tensor& x) {
                 return squeeze(x, Dims{0, 2});
               })});
  c.push_back({"unbind", {{{3, 4}}}, [](const List& x) { return x[0].unbind(1); }, Types::Number});
  c.push_back({"tensor_split",
               {{{7, 2}}},
               [](const List& x) { return x[0].tensor_split(3); },
               Types::Number});
  c.push_back({"tensor_split at",
               {{{7, 2}}},
               [](const List& x) {
                 return tensor_split(x[0], std::vector<int64_t>{2, 2, -1});
               },
               Types::Number});
  c.push_back({"split by sizes",
               {{{7, 2}}},
               [](const List& x) {
                 return x[0].split(std::vector<int64_t>{2, 0, 5});
               },
               Types::Number});
  c.push_back({"stacks",
               {{{2, 3}}, {{2, 3}}},
               [](const List& x) {
                 return List{hstack({x[0], x[1]}), vstack({x[0], x[1]}), dstack({x[0], x[1]}),
                             column_stack({x[0], x[1]})};
               },
               Types::Number});
  c.push_back({"stacks of vectors",
               {{{3}}, {{3}}},
               [](const List& x) {
                 return List{hstack({x[0], x[1]}), vstack({x[0], x[1]}), dstack({x[0], x[1]}),
                             column_stack({x[0], x[1]})};
               },
               Types::Number});
  c.push_back({"stacks of numbers",
               {{{}}, {{}}},
               [](const List& x) {
                 return List{hstack({x[0], x[1]}), vstack({x[0], x[1]})};
               },
               Types::Number});
  c.push_back({"block_diag",
               {{{2, 3}}, {{}}, {{2}}},
               [](const List& x) {
                 return List{block_diag({x[0], x[1], x[2]})};
               },
               Types::Number});
  c.push_back({"broadcast_tensors",
               {{{2, 1}}, {{3}}},
               [](const List& x) {
                 return broadcast_tensors({x[0], x[1]});
               },
               Types::Number});
  c.push_back({"meshgrid",
               {{{2}}, {{3}}},
               [](const List& x) {
                 List a = meshgrid({x[0], x[1]}), b = meshgrid({x[0], x[1]}, "xy");
                 return List{a[0] + a[1], b[0] + b[1]};
               },
               Types::Number});
  c.push_back({"empty stacks",
               {{{0, 3}}},
               [](const List& x) {
                 return List{hstack({x[0], x[0]}), x[0].tile({2, 2}), x[0].diag_embed(),
                             x[0].roll(1, 1), x[0].diagonal()};
               },
               Types::Number});
}

// Many parts at once (copied side by side) and many slices of one value (their gradients put
// together).
void add_many(std::vector<Case>& c) {
  auto pieces = [](const Tensor& x, int64_t dim) {
    List parts;
    for (int64_t i = 0; i < 70; ++i)
      parts.push_back(x.narrow(dim, i % 3, 1 + i % 2) * (1.0 + 0.1 * (i % 5)));
    return parts;
  };
  c.push_back(
      {"cat of many", {{{4, 3}}}, one([pieces](const Tensor& x) { return cat(pieces(x, 0), 0); })});
  c.push_back({"cat of many columns", {{{2, 4}}}, one([pieces](const Tensor& x) {
                 return cat(pieces(x, 1), 1) * 2.0;
               })});
  c.push_back({"stack of many", {{{10, 3}}}, one([](const Tensor& x) {
                 List rows;
                 for (const Tensor& row : x.unbind(0)) rows.push_back(row.exp());
                 return stack(rows, 1);
               })});
  c.push_back({"cat of many numbers",
               {{{12}}},
               [](const List& x) {
                 List parts = x[0].split(1);
                 parts.push_back(x[0].narrow(0, 3, 0));
                 return List{cat(parts, 0)};
               },
               Types::Number});
  c.push_back({"many slices", {{{12, 6}}}, one([](const Tensor& x) {
                 Tensor h = zeros({2}, {x.dtype(), x.device()});
                 for (int64_t t = 0; t < 12; ++t)
                   for (const Tensor& part : x[t].chunk(3)) h = sin(h + part);
                 return h;
               })});
  c.push_back({"many boxes with gaps", {{{5, 9}}}, one([](const Tensor& x) {
                 Tensor sum = x.sum(-1).sum();
                 for (int64_t i = 0; i < 4; ++i)
                   for (int64_t j = 0; j < 8; j += 2)
                     sum = sum + exp(x.narrow(0, i, 1).narrow(1, j, 2)).sum();
                 return sum;
               })});
  c.push_back({"many windows that overlap", {{{16}}}, one([](const Tensor& x) {
                 Tensor sum = sin(x.narrow(0, 0, 3)).sum();
                 for (int64_t i = 1; i < 13; ++i) sum = sum + exp(x.narrow(0, i, 3)).sum() + x[i];
                 return sum;
               })});
}

void add_creation(std::vector<Case>& c) {
  c.push_back({"logspace",
               {{{5}}},
               one([](const Tensor& x) {
                 return x * logspace(-1, 1, 5, 10, {x.dtype(), x.device()}) +
                        logspace(0, 4, 5, 2, {x.dtype(), x.device()});
               }),
               Types::Float,
               true,
               2});
  c.push_back({"tri",
               {{{3, 4}}},
               one([](const Tensor& x) {
                 return x * tri(3, 4, 1, {x.dtype(), x.device()}) +
                        x * tri(3, 4, -1, {x.dtype(), x.device()});
               }),
               Types::Number});
  c.push_back({"normal",
               {{{3, 4}}, {{4}, 0.5, 1}},
               [](const List& x) {
                 return List{normal(x[0], x[1], Generator(5)), normal(x[0], 0.5, Generator(6))};
               },
               Types::Float,
               true,
               4});
  c.push_back({"randperm", {{{12}}}, one([](const Tensor& x) {
                 return x * randperm(12, {x.dtype(), x.device()}, Generator(10));
               })});
  c.push_back({"multinomial",
               {{{3, 5}, 0.2, 2}},
               [](const List& x) {
                 return List{multinomial(x[0], 4, false, Generator(11)),
                             multinomial(x[0], 7, true, Generator(12))};
               },
               Types::Float,
               false});
  c.push_back({"uniform",
               {{{3, 4}}},
               one([](const Tensor& x) {
                 return x * uniform(-2, 3, {3, 4}, {x.dtype(), x.device()}, Generator(7));
               }),
               Types::Float,
               true,
               2});
}

// What the tensor holds after the in-place call, and what a value computed before it still is.
void add_in_place(std::vector<Case>& c) {
  auto push = [&](const char* name, double lo, double hi, std::function<void(Tensor&)> f) {
    c.push_back({std::string(name) + " in place",
                 {{{3, 4}, lo, hi}},
                 [f](const List& x) {
                   Tensor y = x[0] * 1.0, before = y * 2.0;
                   f(y);
                   return List{y, before, y * x[0]};
                 },
                 Types::Float,
                 true,
                 4});
  };
  push("exp_", -1, 1, [](Tensor& y) { y.exp_(); });
  push("sigmoid_", -1, 1, [](Tensor& y) { y.sigmoid_(); });
  push("sqrt_", 0.5, 2, [](Tensor& y) { sqrt_(y); });
  push("relu_", 0.1, 2, [](Tensor& y) { relu_(y); });
  push("pow_", 0.5, 2, [](Tensor& y) { y.pow_(2.5); });
  push("remainder_", 0.6, 0.9, [](Tensor& y) { y.remainder_(0.5); });
  push("add_ alpha", 0.5, 2, [](Tensor& y) { y.add_(y * 2.0, 3).sub_(1.0, 2); });
  push("addcmul_", 0.5, 2, [](Tensor& y) { y.addcmul_(y, y, 0.5).addcdiv_(y, y + 1.0); });
  push("lerp_", 0.5, 2, [](Tensor& y) { y.lerp_(y * y, 0.3); });
  push("masked_fill_", 0.5, 2, [](Tensor& y) {
    y.masked_fill_(tensor({true, false, true, false}, y.device()), 3.0);
  });
  push("clamp_min_", 0.5, 2, [](Tensor& y) { y.clamp_min_(0.01).clamp_max_(9.0); });
  push("tril_", 0.5, 2, [](Tensor& y) { y.tril_(1).triu_(-1); });
  push("fill_diagonal_", 0.5, 2, [](Tensor& y) { y.fill_diagonal_(4.0); });
  push("exp_ of a view", -1, 1, [](Tensor& y) { y[{Slice{0, 2}, 1}].exp_(); });
  push("diagonal written", -1, 1, [](Tensor& y) { y.diagonal(1) *= 3.0; });
  push("random in place", -1, 1, [](Tensor& y) {
    y[0].uniform_(1, 2, Generator(8));
    y[1].normal_(0, 2, Generator(9));
  });
}

}  // namespace

void add_arrangement(std::vector<Case>& c) {
  add_views(c);
  add_many(c);
  add_creation(c);
  add_in_place(c);
}

}  // namespace ingot::check
