// Cases of scans, sorting and writing by index. See op_cases.h.
#include <functional>

#include "ops/op_cases.h"

namespace ingot::check {
namespace {

using List = std::vector<Tensor>;
using Unary = std::function<Tensor(const Tensor&)>;

Function one(Unary f) {
  return [f](const List& x) { return List{f(x[0])}; };
}
Function both(std::function<ValuesIndices(const Tensor&)> f) {
  return [f](const List& x) {
    ValuesIndices r = f(x[0]);
    return List{r.values, r.indices};
  };
}

const std::vector<std::pair<Dims, int64_t>> kPlaces = {
    {{5}, 0},    {{3, 4}, 0}, {{3, 4}, 1}, {{2, 3, 4}, 1}, {{2, 5, 9}, 1}, {{}, 0},
    {{0, 3}, 0}, {{3, 0}, 0}, {{1, 5}, 0}, {{70}, -1},     {{4, 1}, -1}};

void add_scans(std::vector<Case>& c) {
  for (const auto& [shape, dim] : kPlaces) {
    std::string at = to_string(shape) + std::to_string(dim);
    int64_t d = dim;
    c.push_back({"cumsum" + at,
                 {{shape}},
                 one([d](const Tensor& x) { return cumsum(x, d); }),
                 Types::Any,
                 true,
                 8});
    c.push_back({"cumprod" + at,
                 {{shape, 0.7, 1.4}},
                 one([d](const Tensor& x) { return cumprod(x, d); }),
                 Types::Any,
                 true,
                 16});
    c.push_back({"logcumsumexp" + at,
                 {{shape}},
                 one([d](const Tensor& x) { return logcumsumexp(x, d); }),
                 Types::Float,
                 true,
                 8});
    c.push_back({"cummax" + at,
                 {{shape}},
                 both([d](const Tensor& x) { return cummax(x, d); }),
                 Types::Any});
    c.push_back({"cummin" + at,
                 {{shape}},
                 both([d](const Tensor& x) { return cummin(x, d); }),
                 Types::Any});
  }
  auto turned = [](const Tensor& x) {
    return x.transpose(0, 2)[{Slice{{}, {}, -1}, Slice{}, Slice{0, 4, 2}}];
  };
  c.push_back(
      {"cumsum of a view",
       {{{4, 3, 5}}},
       one([turned](const Tensor& x) { return cumsum(turned(x), 0) + cumsum(turned(x) * 2.0, 1); }),
       Types::Float,
       true,
       8});
  c.push_back({"cumsum expanded",
               {{{3, 1}}},
               one([](const Tensor& x) {
                 return cumsum(x.expand({3, 4}), 1) * 2.0;
               }),
               Types::Float,
               true,
               8});
  c.push_back({"cumsum in float64",
               {{{3, 4}}},
               one([](const Tensor& x) { return cumsum(x, 1, float64); }),
               Types::Any,
               true,
               8});
  c.push_back({"cumprod with zeros",
               {{{4, 5}, 0, 1, bool_}, {{4, 5}, 0.5, 1.5}},
               [](const List& x) { return List{cumprod(x[1] * x[0].to(x[1].dtype()), 1)}; },
               Types::Float,
               true,
               8});
  c.push_back({"cumprod with a zero",
               {{{4}, 0.5, 1.5}},
               one([](const Tensor& x) {
                 return cumprod(
                     cat({x[{Slice{0, 2}}], x[{Slice{0, 1}}] - x[{Slice{0, 1}}], x[{Slice{2, 4}}]}),
                     0);
               }),
               Types::Float,
               true,
               8});
}

void add_sorts(std::vector<Case>& c) {
  for (const auto& [shape, dim] : kPlaces)
    for (bool down : {false, true}) {
      std::string at = to_string(shape) + std::to_string(dim) + (down ? " down" : "");
      int64_t d = dim;
      c.push_back({"sort" + at,
                   {{shape}},
                   both([d, down](const Tensor& x) { return sort(x, d, down); }),
                   Types::Any});
      if (shape.numel() == 0) continue;
      c.push_back({"topk" + at,
                   {{shape}},
                   both([d, down](const Tensor& x) {
                     return topk(x, std::min<int64_t>(3, x.dim() ? x.size(d) : 1), d, down);
                   }),
                   Types::Any});
      c.push_back({"kthvalue" + at,
                   {{shape}},
                   both([d, down](const Tensor& x) {
                     return kthvalue(x, 1 + (x.dim() ? x.size(d) : 1) / 2, d, down);
                   }),
                   Types::Any});
      c.push_back({"median" + at,
                   {{shape}},
                   both([d, down](const Tensor& x) { return median(x, d, down); }),
                   Types::Number});
    }
  c.push_back({"argsort",
               {{{3, 7}}},
               one([](const Tensor& x) { return argsort(x, 0) + argsort(-x, 0, true); }),
               Types::Number,
               false});
  c.push_back(
      {"sort of a view", {{{4, 3, 5}}}, both([](const Tensor& x) {
         return sort(x.transpose(0, 2)[{Slice{{}, {}, -1}, Slice{}, Slice{0, 4, 2}}] * 2.0, 0);
       })});
  c.push_back({"sort of ties",
               {{{9}, 0, 3, int64}},
               both([](const Tensor& x) { return sort(x, 0, true); }),
               Types::Float,
               false});
  c.push_back({"median of all",
               {{{3, 4}}},
               one([](const Tensor& x) { return median(x) + nanmedian(x * 2); }),
               Types::Number});
  c.push_back({"msort", {{{3, 4}}}, one([](const Tensor& x) { return msort(x); }), Types::Any});
  c.push_back(
      {"long sort", {{{700}}}, both([](const Tensor& x) { return sort(x); }), Types::Any, false});
  c.push_back({"long topk",
               {{{3, 900}}},
               both([](const Tensor& x) { return topk(x, 5); }),
               Types::Any,
               false});
  c.push_back({"longer topk",
               {{{2, 600}}},
               both([](const Tensor& x) { return topk(x, 100); }),
               Types::Any,
               false});
  for (bool right : {false, true}) {
    c.push_back(
        {"searchsorted",
         {{{7}}, {{3, 4}}},
         [right](const List& x) { return List{searchsorted(sort(x[0]).values, x[1], right)}; },
         Types::Number,
         false});
    c.push_back(
        {"searchsorted rows",
         {{{3, 8}}, {{3, 5}}},
         [right](const List& x) { return List{searchsorted(sort(x[0]).values, x[1], right)}; },
         Types::Number,
         false});
    c.push_back({"bucketize",
                 {{{5}}},
                 one([right](const Tensor& x) {
                   return bucketize(x, tensor({-1.0, 0.0, 1.5}, x.device()), right);
                 }),
                 Types::Float,
                 false});
  }
}

void add_writes(std::vector<Case>& c) {
  struct Row {
    Dims x, index, src;
    int64_t dim;
  };
  const std::vector<Row> rows = {{{3, 4}, {3, 2}, {3, 2}, 1},
                                 {{3, 4}, {5, 4}, {5, 4}, 0},
                                 {{4, 5, 3}, {2, 7, 2}, {3, 8, 2}, 1},
                                 {{6}, {9}, {9}, 0},
                                 {{}, {}, {}, 0},
                                 {{3, 4}, {0, 4}, {0, 4}, 0}};
  for (const Row& r : rows) {
    int64_t d = r.dim;
    double size = r.x.size() ? static_cast<double>(r.x[static_cast<int>(d)]) : 1;
    std::vector<In> in = {{r.index, 0, size, int64}, {r.x, 0.5, 2}, {r.src, 0.5, 2}};
    std::string at = to_string(r.x) + std::to_string(d);
    c.push_back({"scatter" + at, in,
                 [d](const List& x) { return List{scatter(x[1], d, x[0], x[2])}; }, Types::Any});
    c.push_back({"scatter a number" + at, in,
                 [d](const List& x) { return List{scatter(x[1], d, x[0], 3)}; }, Types::Any});
    c.push_back({"scatter_add" + at, in,
                 [d](const List& x) { return List{scatter_add(x[1], d, x[0], x[2])}; },
                 Types::Number, true, 8});
    for (const char* how : {"sum", "prod", "mean", "amax", "amin"})
      for (bool self : {true, false})
        c.push_back({std::string("scatter_reduce ") + how + at + (self ? " self" : ""), in,
                     [d, how, self](const List& x) {
                       return List{scatter_reduce(x[1], d, x[0], x[2], how, self)};
                     },
                     std::string(how)[0] == 'a' ? Types::Any : Types::Number, true, 8});
  }
  c.push_back({"scatter_reduce with zeros",
               {{{3, 6}, 0, 3, int64}, {{3, 6}, 0, 1, bool_}, {{3, 6}}, {{3, 3}}},
               [](const List& x) {
                 return List{scatter_reduce(x[3], 1, x[0], x[2] * x[1].to(x[2].dtype()), "prod")};
               },
               Types::Float,
               true,
               8});
  const std::vector<In> line = {{{3}, 0, 4, int64}, {{2, 4, 3}}, {{2, 3, 3}}};
  c.push_back({"index_add", line,
               [](const List& x) { return List{index_add(x[1], 1, x[0], x[2], 2)}; }, Types::Number,
               true, 8});
  c.push_back({"index_copy", line,
               [](const List& x) { return List{index_copy(x[1], 1, x[0], x[2])}; }, Types::Any});
  c.push_back(
      {"index_fill", line,
       [](const List& x) {
         return List{index_fill(x[1], 1, x[0], 3), index_fill(x[1], 1, x[0], x[2][{0, 0, 0}])};
       },
       Types::Any});
  c.push_back({"put",
               {{{5}, -12, 12, int64}, {{3, 4}}, {{5}}},
               [](const List& x) {
                 return List{put(x[1], x[0], x[2]), put(x[1], x[0], x[2], true)};
               },
               Types::Number,
               true,
               8});
  c.push_back({"take",
               {{{2, 5}, -12, 12, int64}, {{3, 4}}},
               [](const List& x) { return List{take(x[1], x[0])}; },
               Types::Any});
  c.push_back({"take_along_dim",
               {{{1, 5}, 0, 3, int64}, {{3, 4}}},
               [](const List& x) {
                 return List{take_along_dim(x[1].t(), x[0], 1), take_along_dim(x[1], x[0])};
               },
               Types::Any});
}

}  // namespace

void add_index_cases(std::vector<Case>& c) {
  add_scans(c);
  add_sorts(c);
  add_writes(c);
}

}  // namespace ingot::check
