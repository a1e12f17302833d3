// Results whose shape depends on values. Each runs what is pending and waits once: for the number
// of true elements of a mask, or the largest of some integers. Where the host reads the device's
// memory itself, the positions are found there.
#include "ingot/capture.h"
#include "ingot/indexing.h"
#include "ingot/sorting.h"
#include "ops/indexing.h"

namespace ingot {

void check_not_captured(const Tensor& x, const char* op, const SourceLoc& loc) {
  if (is_capturing())
    fail(ErrorKind::State, op,
         "the shape of its result depends on the values of " + describe(x) +
             ", which a captured function cannot read",
         loc,
         "call it outside, or use a form of fixed shape (masked_fill, where(condition, a, b))");
}

Tensor true_places(const Tensor& given) {
  const Tensor mask = given.snapshot();
  int64_t n = mask.numel();
  if (n == 0) return zeros({0}, {int64, mask.device()});
  if (mask.device().type() == DeviceType::CPU) {
    std::vector<uint8_t> host(static_cast<size_t>(n));
    mask.copy_to(host.data());
    std::vector<int64_t> at(static_cast<size_t>(n) + 1);
    size_t count = 0;
    for (int64_t i = 0; i < n; ++i) {
      at[count] = i;
      count += host[static_cast<size_t>(i)] != 0;
    }
    return from_data(at.data(), Dims{static_cast<int64_t>(count)}, mask.device());
  }
  Tensor before = cumsum(mask.reshape({-1}), 0);
  int64_t count = before[-1].item<int64_t>();
  return searchsorted(before, arange(1, count + 1, {int64, mask.device()}));
}

namespace {

Tensor as_mask(const Tensor& x) { return x.dtype() == DType::Bool ? x : x != 0; }

// Flat positions as one vector for each dim.
std::vector<Tensor> columns(const Tensor& flat, const Dims& shape) {
  std::vector<Tensor> out;
  int64_t below = shape.numel();
  for (int64_t size : shape) {
    below = size ? below / size : 0;
    if (below == 0)
      out.push_back(flat);  // nothing is there
    else if (shape.size() == 1)
      out.push_back(flat);
    else
      out.push_back(remainder(floor_divide(flat, below), size));
  }
  return out;
}

void check_mask(const Tensor& mask, const char* op, const SourceLoc& loc) {
  if (node_of(mask, op, loc)->dtype != DType::Bool)
    fail(ErrorKind::DType, op, "the mask must be bool, not " + describe(mask), loc,
         "compare it, as in mask != 0");
}

Dims broadcast_or_fail(const Tensor& a, const Tensor& b, const char* op, const SourceLoc& loc) {
  Dims both;
  if (!broadcast_shapes(a.shape(), b.shape(), both))
    fail(ErrorKind::Shape, op, "cannot broadcast " + describe(a) + " with " + describe(b), loc,
         "sizes must be equal or 1, counted from the last dim");
  return both;
}

void check_integers(const Tensor& x, const char* op, const SourceLoc& loc) {
  NodeRef n = node_of(x, op, loc);
  if (is_float(n->dtype) || n->dtype == DType::Bool)
    fail(ErrorKind::DType, op, "needs integers, not " + describe(x), loc,
         "convert with .to(int64)");
}

// Smallest and largest, read together.
std::pair<int64_t, int64_t> bounds(const Tensor& x) {
  std::vector<int64_t> b = stack({amin(x), amax(x)}).to_vector<int64_t>();
  return {b[0], b[1]};
}

}  // namespace

std::vector<Tensor> where(const Tensor& condition, SourceLoc place) {
  SourceLoc loc = user_loc(place);
  LocScope scope(loc);
  node_of(condition, "where", loc);
  check_not_captured(condition, "where", loc);
  Tensor flat = true_places(as_mask(condition));
  if (condition.dim() == 0) return {flat};
  return columns(flat, condition.shape());
}

Tensor nonzero(const Tensor& x, SourceLoc place) {
  SourceLoc loc = user_loc(place);
  LocScope scope(loc);
  node_of(x, "nonzero", loc);
  check_not_captured(x, "nonzero", loc);
  Tensor flat = true_places(as_mask(x));
  if (x.dim() == 0) return zeros({flat.numel(), 0}, {int64, x.device()});
  if (flat.numel() == 0) return zeros({0, x.dim()}, {int64, x.device()});
  return stack(columns(flat, x.shape()), 1);
}

Tensor argwhere(const Tensor& x, SourceLoc loc) { return nonzero(x, loc); }

Tensor masked_select(const Tensor& x, const Tensor& mask, SourceLoc place) {
  SourceLoc loc = user_loc(place);
  LocScope scope(loc);
  node_of(x, "masked_select", loc);
  check_mask(mask, "masked_select", loc);
  Dims both = broadcast_or_fail(x, mask, "masked_select", loc);
  check_not_captured(mask, "masked_select", loc);
  return take(x.expand(both), true_places(mask.expand(both)));
}

Tensor masked_scatter(const Tensor& x, const Tensor& mask, const Tensor& source, SourceLoc place) {
  SourceLoc loc = user_loc(place);
  LocScope scope(loc);
  const char* op = "masked_scatter";
  NodeRef n = node_of(x, op, loc), s = node_of(source, op, loc);
  check_mask(mask, op, loc);
  Dims both = broadcast_or_fail(x, mask, op, loc);
  if (n->dtype != s->dtype)
    fail(ErrorKind::DType, op,
         "the source " + describe(source) + " differs in type from " + describe(x), loc,
         "convert it: .to(" + std::string(name_of(n->dtype)) + ")");
  if (both.numel() == 0) return x.expand(both).clone();
  Tensor m = mask.expand(both).reshape({-1});
  // One extra element, for positions outside the mask and for an empty source.
  Tensor from = cat({source.reshape({-1}), zeros({1}, {n->dtype, n->device})});
  Tensor at = cumsum(m, 0);
  at = where(m, where(at > s->numel(), s->numel() + 1, at - 1), s->numel());
  return where(m, gather(from, 0, at), x.expand(both).reshape({-1})).reshape(both);
}

Tensor one_hot(const Tensor& index, SourceLoc place) {
  SourceLoc loc = user_loc(place);
  LocScope scope(loc);
  check_integers(index, "one_hot", loc);
  check_not_captured(index, "one_hot", loc);
  if (index.numel() == 0)
    fail(ErrorKind::Value, "one_hot",
         "the number of classes does not follow from no elements: " + describe(index), loc,
         "give num_classes");
  auto [low, high] = bounds(index);
  if (low < 0)
    fail(ErrorKind::Value, "one_hot", "an index is negative: " + std::to_string(low), loc);
  return one_hot(index.to(int64), high + 1);
}

Tensor embedding(const Tensor& weight, const Tensor& index, int64_t padding_idx, SourceLoc place) {
  SourceLoc loc = user_loc(place);
  LocScope scope(loc);
  Tensor rows = embedding(weight, index, loc);
  int64_t count = weight.size(0), row = padding_idx < 0 ? padding_idx + count : padding_idx;
  if (row < 0 || row >= count)
    fail(ErrorKind::Index, "embedding",
         "padding_idx " + std::to_string(padding_idx) + " is outside the rows of " +
             describe(weight),
         loc);
  return where((index == row).unsqueeze(-1), rows.detach(), rows);
}

Unique unique(const Tensor& x, SourceLoc place) {
  SourceLoc loc = user_loc(place);
  LocScope scope(loc);
  node_of(x, "unique", loc);
  check_not_captured(x, "unique", loc);
  int64_t n = x.numel();
  Options ints(int64, x.device());
  if (n == 0)
    return {zeros({0}, {x.dtype(), x.device()}), zeros(x.shape(), ints), zeros({0}, ints)};
  ValuesIndices s = sort(x.detach().reshape({-1}));
  Tensor fresh =
      cat({ones({1}, {bool_, x.device()}), s.values[{Slice{1}}] != s.values[{Slice{{}, -1}}]});
  Tensor number = cumsum(fresh, 0) - 1;
  Tensor inverse = scatter(zeros({n}, ints), 0, s.indices, number).reshape(x.shape());
  Tensor starts = true_places(fresh);
  Tensor ends = cat({starts[{Slice{1}}], full({1}, n, ints)});
  return {take(s.values, starts), inverse, ends - starts};
}

Tensor bincount(const Tensor& x, const Tensor& weights, int64_t minlength, SourceLoc place) {
  SourceLoc loc = user_loc(place);
  LocScope scope(loc);
  check_integers(x, "bincount", loc);
  if (x.dim() != 1)
    fail(ErrorKind::Shape, "bincount", "counts the elements of a vector, not of " + describe(x),
         loc, "use x.flatten()");
  if (minlength < 0)
    fail(ErrorKind::Value, "bincount", "minlength is negative: " + std::to_string(minlength), loc);
  if (weights.defined() && !(weights.shape() == x.shape()))
    fail(ErrorKind::Shape, "bincount",
         "weights " + describe(weights) + " differ in shape from " + describe(x), loc);
  check_not_captured(x, "bincount", loc);
  DType t = !weights.defined()                  ? DType::Int64
            : weights.dtype() == DType::Float32 ? DType::Float32
                                                : DType::Float64;
  int64_t size = minlength;
  if (x.numel()) {
    auto [low, high] = bounds(x);
    if (low < 0)
      fail(ErrorKind::Value, "bincount", "an element is negative: " + std::to_string(low), loc);
    size = std::max(size, high + 1);
  }
  if (x.numel() == 0) return zeros({size}, {t, x.device()});
  Tensor w = weights.defined() ? weights.to(t) : ones({1}, {int64, x.device()}).expand(x.shape());
  return scatter_add_zeros({size}, 0, x.to(int64), w);
}

Tensor histc(const Tensor& x, int64_t bins, double min, double max, SourceLoc place) {
  SourceLoc loc = user_loc(place);
  LocScope scope(loc);
  NodeRef n = node_of(x, "histc", loc);
  if (!is_float(n->dtype))
    fail(ErrorKind::DType, "histc", "needs a floating type, not " + describe(x), loc,
         "convert with x.to(float32)");
  if (bins < 1)
    fail(ErrorKind::Value, "histc", "bins must be at least 1, not " + std::to_string(bins), loc);
  if (max < min)
    fail(ErrorKind::Value, "histc", "max " + text_of(max) + " is smaller than min " + text_of(min),
         loc);
  DType t = is_half(n->dtype) ? DType::Float32 : n->dtype;
  Options o(n->dtype, n->device);
  if (n->numel() == 0) return zeros({bins}, o);
  Tensor v = x.detach().to(t).reshape({-1});
  Tensor lo = min == max ? amin(v) : full({}, min, {t, n->device}),
         hi = min == max ? amax(v) : full({}, max, {t, n->device});
  Tensor flat = lo == hi;  // one value: a range of 2 around it
  lo = where(flat, lo - 1, lo);
  hi = where(flat, hi + 1, hi);
  Tensor inside = logical_and(v >= lo, v <= hi);
  Tensor bin = where(inside, (v - lo) * static_cast<double>(bins) / (hi - lo), 0.0).to(int64);
  return scatter_add_zeros({bins}, 0, clamp_max(bin, bins - 1), inside.to(t)).to(n->dtype);
}

}  // namespace ingot
