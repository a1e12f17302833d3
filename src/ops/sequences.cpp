// New tensors composed from others (creation.h): sequences, triangles, grids, random numbers of
// other distributions.
#include "ingot/creation.h"
#include "ingot/movement.h"
#include "ingot/sorting.h"
#include "ops/composed.h"

namespace ingot {

Tensor logspace(double start, double end, int64_t steps, double base, const Options& o,
                SourceLoc place) {
  SourceLoc loc = user_loc(place);
  LocScope scope(loc);
  if (steps < 0)
    fail(ErrorKind::Value, "logspace",
         "the number of steps cannot be negative: " + std::to_string(steps), loc);
  Tensor exponent = linspace(start, end, steps, {DType::Float64, device_or_default(o)});
  return pow(base, exponent).to(dtype_or(o, DType::Float32));
}

Tensor tri(int64_t n, std::optional<int64_t> m, int64_t diagonal, const Options& o,
           SourceLoc place) {
  SourceLoc loc = user_loc(place);
  LocScope scope(loc);
  Dims shape{n, m.value_or(n)};
  check_new_shape(shape, "tri", loc);
  return tril(ones(shape, {dtype_or(o, DType::Float32), device_or_default(o)}), diagonal);
}

namespace {

Tensor triangle_indices(int64_t row, int64_t col, int64_t offset, bool lower, const Options& o,
                        const char* op, const SourceLoc& where) {
  SourceLoc loc = user_loc(where);
  check_new_shape({row, col}, op, loc);
  std::vector<int64_t> rows, cols;
  for (int64_t i = 0; i < row; ++i)
    for (int64_t j = 0; j < col; ++j)
      if (lower ? j - i <= offset : j - i >= offset) {
        rows.push_back(i);
        cols.push_back(j);
      }
  int64_t count = static_cast<int64_t>(rows.size());
  rows.insert(rows.end(), cols.begin(), cols.end());
  return tensor(rows, Dims{2, count}, {dtype_or(o, DType::Int64), device_or_default(o)}, loc);
}

}  // namespace

Tensor tril_indices(int64_t row, int64_t col, int64_t offset, const Options& o, SourceLoc loc) {
  return triangle_indices(row, col, offset, true, o, "tril_indices", loc);
}
Tensor triu_indices(int64_t row, int64_t col, int64_t offset, const Options& o, SourceLoc loc) {
  return triangle_indices(row, col, offset, false, o, "triu_indices", loc);
}

std::vector<Tensor> meshgrid(const std::vector<Tensor>& tensors, std::string_view indexing,
                             SourceLoc where) {
  SourceLoc loc = user_loc(where);
  if (tensors.empty())
    fail(ErrorKind::Value, "meshgrid", "was given no tensors", loc, "give at least one");
  if (indexing != "ij" && indexing != "xy")
    fail(ErrorKind::Value, "meshgrid", "indexing is \"" + std::string(indexing) + "\"", loc,
         "use \"ij\" or \"xy\"");
  bool swap = indexing == "xy" && tensors.size() > 1;
  int rank = static_cast<int>(tensors.size());
  if (rank > kMaxDims)
    fail(ErrorKind::Shape, "meshgrid", "more tensors than a tensor can have dims", loc);
  Dims shape;
  for (const Tensor& x : tensors) {
    NodeRef n = node_of(x, "meshgrid", loc);
    if (n->rank() > 1)
      fail(ErrorKind::Shape, "meshgrid", "takes vectors and 0-d tensors, not " + describe(x), loc);
    shape.push_back(n->numel());
  }
  std::vector<Tensor> out;
  for (int i = 0; i < rank; ++i) {
    Dims line = Dims::filled(rank, 1);
    line[i] = shape[i];
    Tensor grid = expand(reshape(tensors[static_cast<size_t>(i)], line, loc), shape, loc);
    out.push_back(swap ? transpose(grid, 0, 1, loc) : grid);
  }
  return out;
}

// ---- Random numbers

Tensor randint(int64_t high, const Dims& shape, const Options& o, const Generator& g,
               SourceLoc loc) {
  return randint(0, high, shape, o, g, loc);
}
Tensor randint_like(const Tensor& x, int64_t low, int64_t high, const Options& o,
                    const Generator& g, SourceLoc where) {
  SourceLoc loc = user_loc(where);
  NodeRef n = node_of(x, "randint_like", loc);
  return randint(low, high, n->shape, {dtype_or(o, n->dtype), o.device ? *o.device : n->device}, g,
                 loc);
}

namespace {

DType random_type(const Options& o, const char* op, const SourceLoc& loc) {
  DType t = dtype_or(o, DType::Float32);
  if (!is_float(t))
    fail(ErrorKind::DType, op, "makes floating numbers, not " + std::string(name_of(t)), loc,
         "use randint() for integers");
  return t;
}

}  // namespace

Tensor uniform(double from, double to, const Dims& shape, const Options& o, const Generator& g,
               SourceLoc place) {
  SourceLoc loc = user_loc(place);
  LocScope scope(loc);
  DType t = random_type(o, "uniform", loc);
  if (!(from <= to))
    fail(ErrorKind::Value, "uniform", "from " + text_of(from) + " is above to " + text_of(to), loc);
  Tensor u = rand(shape, {t, device_or_default(o)}, g);
  return (u.to(compute_type(t)) * (to - from) + from).to(t);
}

Tensor normal(double mean, double std, const Dims& shape, const Options& o, const Generator& g,
              SourceLoc place) {
  SourceLoc loc = user_loc(place);
  LocScope scope(loc);
  DType t = random_type(o, "normal", loc);
  if (!(std >= 0))
    fail(ErrorKind::Value, "normal", "the standard deviation cannot be negative: " + text_of(std),
         loc);
  return (randn(shape, {compute_type(t), device_or_default(o)}, g) * std + mean).to(t);
}

Tensor normal(const Tensor& mean, const Operand& std, const Generator& g, SourceLoc place) {
  SourceLoc loc = user_loc(place);
  LocScope scope(loc);
  DType t = floating_node(mean, "normal", loc)->dtype, w = compute_type(t);
  if (!std.tensor && !(std.scalar.to<double>() >= 0))
    fail(ErrorKind::Value, "normal",
         "the standard deviation cannot be negative: " + text_of(std.scalar.to<double>()), loc);
  Tensor centre = mean.to(w), spread = operand_as(std, w, mean.device(), "normal", loc);
  Dims shape;
  if (!broadcast_shapes(centre.shape(), spread.shape(), shape))
    fail(ErrorKind::Shape, "normal",
         "mean " + describe(mean) + " and std " + describe(spread) + " do not broadcast", loc);
  if (std.tensor) spread = checked(spread, logical_not(spread < 0.0), Check::NormalDeviation, loc);
  return (randn(shape, {w, mean.device()}, g) * spread + centre).to(t);
}

// In the order of keys of 63 random bits, so that no two are the same but once in a universe.
Tensor randperm(int64_t n, const Options& o, const Generator& g, SourceLoc place) {
  SourceLoc loc = user_loc(place);
  LocScope scope(loc);
  if (n < 0) fail(ErrorKind::Value, "randperm", "n cannot be negative: " + std::to_string(n), loc);
  Device d = device_or_default(o);
  Tensor high = randint(0, int64_t{1} << 31, {n}, {DType::Int64, d}, g),
         low = randint(0, int64_t{1} << 32, {n}, {DType::Int64, d}, g);
  return argsort(bitwise_or(bitwise_left_shift(high, 32), low)).to(dtype_or(o, DType::Int64));
}

Tensor multinomial(const Tensor& weights, int64_t num_samples, bool replacement, const Generator& g,
                   SourceLoc place) {
  SourceLoc loc = user_loc(place);
  LocScope scope(loc);
  NodeRef n = floating_node(weights, "multinomial", loc);
  if (n->rank() < 1 || n->rank() > 2 || n->shape.back() == 0)
    fail(ErrorKind::Shape, "multinomial", "takes weights [C] or [N, C], not " + describe(weights),
         loc);
  int64_t classes = n->shape.back();
  if (num_samples < 1 || (!replacement && num_samples > classes))
    fail(ErrorKind::Value, "multinomial",
         "cannot draw " + std::to_string(num_samples) + " of " + std::to_string(classes) +
             " without replacement",
         loc, num_samples < 1 ? "draw at least 1" : "set replacement");
  Tensor w = weights.detach().to(DType::Float64);
  Dims shape = n->shape;
  Options o{DType::Float64, n->device};
  // The largest of weight / exponential noise are a draw without replacement.
  if (!replacement)
    return topk(w / clamp_min(-log(1.0 - rand(shape, o, g)), 1e-300), num_samples, -1).indices;
  shape[shape.size() - 1] = num_samples;
  Tensor sums = cumsum(w, -1), at = rand(shape, o, g) * narrow(sums, -1, classes - 1, 1);
  return searchsorted(sums, at, true).clamp(0, classes - 1);
}

}  // namespace ingot
