// Windows as columns, and other sizes of images.
#include <algorithm>
#include <cmath>

#include "graph/shape_rules.h"
#include "ops/windows.h"

namespace ingot {
namespace {

Windows two_dims(const PerDim& kernel, const PerDim& dilation, const PerDim& padding,
                 const PerDim& stride, const char* op, const SourceLoc& loc) {
  Windows w;
  w.kernel = per_dim(kernel, 2, 1, "kernel_size", op, loc);
  w.dilation = per_dim(dilation, 2, 1, "dilation", op, loc);
  w.front = w.behind = per_dim(padding, 2, 0, "padding", op, loc);
  w.stride = per_dim(stride, 2, 1, "stride", op, loc);
  return w;
}

// The order of dims that swaps the positions of windows and the positions in them: [.., C, a, b, c,
// d] with the channels at c becomes [.., C, c, d, a, b].
Dims swapped(int channels) {
  Dims order;
  for (int d = 0; d <= channels; ++d) order.push_back(d);
  for (int d : {3, 4, 1, 2}) order.push_back(channels + d);
  return order;
}

}  // namespace

Tensor unfold(const Tensor& input, const PerDim& kernel_size, const PerDim& dilation,
              const PerDim& padding, const PerDim& stride, SourceLoc place) {
  const char* op = "unfold";
  SourceLoc loc = user_loc(place);
  LocScope scope(loc);
  NodeRef x = node_of(input, op, loc);
  if (x->rank() != 4 && x->rank() != 3)
    fail(ErrorKind::Shape, op,
         "expects [batch, channels, height, width] or the same without batch, not " + describe(*x),
         loc);
  const Windows w = two_dims(kernel_size, dilation, padding, stride, op, loc);
  const int lead = x->rank() - 2;
  for (int d = 0; d < 2; ++d)
    if (w.count(d, x->shape[lead + d]) < 1)
      fail(ErrorKind::Shape, op,
           "windows of " + to_string(w.kernel) + " do not fit into " + describe(*x), loc);
  Tensor view = window_view(input, w, loc);  // [.., C, OH, OW, KH, KW]
  const int c = lead - 1;
  Dims shape(x->shape.begin(), c);
  shape.push_back(x->shape[c] * w.kernel.numel());
  shape.push_back(view.size(c + 1) * view.size(c + 2));
  return view.permute(swapped(c)).reshape(shape);
}

Tensor fold(const Tensor& input, const PerDim& output_size, const PerDim& kernel_size,
            const PerDim& dilation, const PerDim& padding, const PerDim& stride, SourceLoc place) {
  const char* op = "fold";
  SourceLoc loc = user_loc(place);
  LocScope scope(loc);
  NodeRef x = node_of(input, op, loc);
  if (x->rank() != 3 && x->rank() != 2)
    fail(ErrorKind::Shape, op,
         "expects [batch, channels * window, windows] or the same without batch, not " +
             describe(*x),
         loc);
  const Windows w = two_dims(kernel_size, dilation, padding, stride, op, loc);
  const Dims size = per_dim(output_size, 2, 1, "output_size", op, loc);
  const int c = x->rank() - 2;
  const int64_t h = w.count(0, size[0]), v = w.count(1, size[1]), k = w.kernel.numel();
  if (x->shape[c] % k || x->shape[c + 1] != h * v)
    fail(ErrorKind::Shape, op,
         describe(*x) + " does not fold into " + to_string(size) + ": windows of " +
             to_string(w.kernel) + " expect a multiple of " + std::to_string(k) + " rows and " +
             std::to_string(h * v) + " columns",
         loc);
  Dims shape(x->shape.begin(), c), out = shape;
  for (int64_t s : {x->shape[c] / k, w.kernel[0], w.kernel[1], h, v}) shape.push_back(s);
  for (int64_t s : {x->shape[c] / k, size[0], size[1]}) out.push_back(s);
  return fold_windows(input.reshape(shape).permute(swapped(c)), {}, w, out, loc);
}

namespace {

// For each position of the result along one dim: a position it is made of, and its share
// (undefined: all). Both are computed on the input's device, so that nothing is copied there.
struct Tap {
  Tensor at, share;
};

Tensor cubic(const Tensor& t) {  // the weight of a point at distance t, as PyTorch's (a = -0.75)
  const double a = -0.75;
  Tensor near = ((a + 2) * t - (a + 3)) * t * t + 1.0,
         far = ((a * t - 5 * a) * t + 8 * a) * t - 4 * a;
  return where(t <= 1.0, near, where(t < 2.0, far, 0.0));
}

std::vector<Tap> taps_of(std::string_view mode, int64_t from, int64_t to, double step, bool align,
                         const Device& device) {
  const Tensor p = arange(to, {DType::Float64, device});
  auto inside = [&](const Tensor& i) {
    return clamp(i, 0.0, static_cast<double>(from - 1)).to(DType::Int64);
  };
  // PyTorch rounds these to float32 before it takes the floor.
  if (mode == "nearest") return {{inside(floor((p * step).to(DType::Float32))), {}}};
  if (mode == "nearest-exact") return {{inside(floor(((p + 0.5) * step).to(DType::Float32))), {}}};
  const bool cube = mode == "bicubic";
  Tensor x = align ? p * step : (p + 0.5) * step - 0.5;
  if (!cube) x = clamp_min(x, 0.0);
  const Tensor whole = floor(x);
  std::vector<Tap> taps;
  for (int k = cube ? -1 : 0; k < (cube ? 3 : 2); ++k) {
    const Tensor i = whole + static_cast<double>(k), away = abs(x - i);
    taps.push_back({inside(i), cube ? cubic(away) : 1.0 - away});
  }
  return taps;
}

// One dim resampled: the taps' elements, weighted and added.
Tensor resample(const Tensor& x, int dim, int64_t to, std::string_view mode, double step,
                bool align) {
  const int64_t from = x.size(dim);
  if (mode == "nearest" && to % from == 0 &&
      std::fabs(step * static_cast<double>(to) - static_cast<double>(from)) < 1e-9) {
    Dims spread = x.shape(), wide = spread, shape = spread;  // each element repeated: a view
    spread.insert(dim + 1, 1);
    wide.insert(dim + 1, to / from);
    shape[dim] = to;
    return x.reshape(spread).expand(wide).reshape(shape);
  }
  Tensor y;
  Dims along = Dims::filled(x.dim(), 1);
  along[dim] = to;
  for (const Tap& tap : taps_of(mode, from, to, step, align, x.device())) {
    Tensor part = index_select(x, dim, tap.at);
    if (tap.share.defined()) part = part * tap.share.to(x.dtype()).reshape(along);
    y = y.defined() ? y + part : part;
  }
  return y;
}

struct Sizes {
  Dims to;
  std::vector<double> step;
};

Sizes sizes_of(const Node* x, const InterpolateOptions& o, const char* op, const SourceLoc& loc) {
  const int n = x->rank() - 2;
  if (o.size.given() == !o.scale_factor.empty())
    fail(ErrorKind::Value, op, "expects either size or scale_factor", loc);
  Sizes s;
  if (o.size.given()) {
    s.to = per_dim(o.size, n, 1, "size", op, loc);
  } else if (o.scale_factor.size() != 1 && o.scale_factor.size() != static_cast<size_t>(n)) {
    fail(ErrorKind::Value, op,
         "scale_factor has " + std::to_string(o.scale_factor.size()) + " numbers for " +
             std::to_string(n) + " dims",
         loc);
  }
  for (int d = 0; d < n; ++d) {
    const auto from = static_cast<double>(x->shape[2 + d]);
    double scale = 0;
    if (!o.size.given()) {
      scale =
          o.scale_factor.size() == 1 ? o.scale_factor[0] : o.scale_factor[static_cast<size_t>(d)];
      if (!(scale > 0) || scale > 1e9)
        fail(ErrorKind::Value, op, "scale_factor is " + text_of(scale), loc,
             "use a number above 0");
      s.to.push_back(static_cast<int64_t>(std::floor(from * scale)));
      if (s.to.back() < 1)
        fail(ErrorKind::Shape, op,
             "nothing is left of " + describe(*x) + " at scale_factor " + text_of(scale), loc);
    }
    const auto to = static_cast<double>(s.to[d]);
    const bool linear = o.mode != "nearest" && o.mode != "nearest-exact" && o.mode != "area";
    if (o.align_corners && linear)
      s.step.push_back(to > 1 ? (from - 1) / (to - 1) : 0);
    else
      s.step.push_back(scale > 0 && !o.recompute_scale_factor ? 1 / scale : from / to);
  }
  return s;
}

}  // namespace

Tensor interpolate(const Tensor& input, const InterpolateOptions& options, SourceLoc place) {
  const char* op = "interpolate";
  SourceLoc loc = user_loc(place);
  LocScope scope(loc);
  NodeRef x = node_of(input, op, loc);
  const int n = x->rank() - 2;
  if (n < 1 || n > 3)
    fail(ErrorKind::Shape, op, "expects [batch, channels, and 1 to 3 dims], not " + describe(*x),
         loc);
  const std::string_view m = options.mode;
  const bool any_rank = m == "nearest" || m == "nearest-exact" || m == "area";
  const int wants = m == "linear"                       ? 1
                    : m == "bilinear" || m == "bicubic" ? 2
                    : m == "trilinear"                  ? 3
                                                        : 0;
  if (!any_rank && wants == 0)
    fail(ErrorKind::Value, op, "mode is \"" + std::string(m) + "\"", loc,
         "use nearest, nearest-exact, linear, bilinear, trilinear, bicubic or area");
  if (wants && wants != n)
    fail(ErrorKind::Value, op,
         "mode \"" + std::string(m) + "\" is for " + std::to_string(wants) + " dims, not for " +
             describe(*x),
         loc);
  if (options.align_corners && any_rank)
    fail(ErrorKind::Value, op, "align_corners has no meaning in mode \"" + std::string(m) + "\"",
         loc);
  if (!is_float(x->dtype) && m != "nearest" && m != "nearest-exact")
    fail(ErrorKind::DType, op, "needs a floating type, not " + describe(*x), loc,
         "convert with x.to(float32)");
  if (x->numel() == 0)
    fail(ErrorKind::Shape, op, "needs an input with elements, not " + describe(*x), loc);
  const Sizes s = sizes_of(x, options, op, loc);
  if (m == "area")
    return n == 1   ? adaptive_avg_pool1d(input, s.to, loc)
           : n == 2 ? adaptive_avg_pool2d(input, s.to, loc)
                    : adaptive_avg_pool3d(input, s.to, loc);
  const DType t = x->dtype, wide = is_half(t) ? DType::Float32 : t;
  Tensor y = any_rank ? input : input.to(wide);
  for (int d = n - 1; d >= 0; --d) {
    if (s.to[d] == x->shape[2 + d] &&
        (s.step[static_cast<size_t>(d)] == 1 || options.align_corners))
      continue;
    y = resample(y, 2 + d, s.to[d], m, s.step[static_cast<size_t>(d)], options.align_corners);
  }
  y = y.to(t);
  return y.cell() == input.cell() ? input.clone(loc) : y;
}

Tensor pixel_shuffle(const Tensor& input, int64_t r, SourceLoc place) {
  const char* op = "pixel_shuffle";
  SourceLoc loc = user_loc(place);
  LocScope scope(loc);
  NodeRef x = node_of(input, op, loc);
  if (x->rank() < 3 || x->rank() > kMaxDims - 2)
    fail(ErrorKind::Shape, op, "expects [.., channels, height, width], not " + describe(*x), loc);
  const int c = x->rank() - 3;
  if (r < 1 || x->shape[c] % (r * r))
    fail(ErrorKind::Value, op,
         "the square of " + std::to_string(r) + " does not divide the channels of " + describe(*x),
         loc);
  Dims lead(x->shape.begin(), c), split = lead, order, out = lead;
  const int64_t n = x->shape[c] / (r * r), h = x->shape[c + 1], w = x->shape[c + 2];
  for (int64_t s : {n, r, r, h, w}) split.push_back(s);
  for (int d = 0; d <= c; ++d) order.push_back(d);
  for (int d : {c + 3, c + 1, c + 4, c + 2}) order.push_back(d);
  for (int64_t s : {n, h * r, w * r}) out.push_back(s);
  return input.reshape(split).permute(order).reshape(out);
}

Tensor pixel_unshuffle(const Tensor& input, int64_t r, SourceLoc place) {
  const char* op = "pixel_unshuffle";
  SourceLoc loc = user_loc(place);
  LocScope scope(loc);
  NodeRef x = node_of(input, op, loc);
  if (x->rank() < 3 || x->rank() > kMaxDims - 2)
    fail(ErrorKind::Shape, op, "expects [.., channels, height, width], not " + describe(*x), loc);
  const int c = x->rank() - 3;
  if (r < 1 || x->shape[c + 1] % r || x->shape[c + 2] % r)
    fail(ErrorKind::Value, op,
         std::to_string(r) + " does not divide height and width of " + describe(*x), loc);
  Dims lead(x->shape.begin(), c), split = lead, order, out = lead;
  const int64_t n = x->shape[c], h = x->shape[c + 1] / r, w = x->shape[c + 2] / r;
  for (int64_t s : {n, h, r, w, r}) split.push_back(s);
  for (int d = 0; d <= c; ++d) order.push_back(d);
  for (int d : {c + 2, c + 4, c + 1, c + 3}) order.push_back(d);
  for (int64_t s : {n * r * r, h, w}) out.push_back(s);
  return input.reshape(split).permute(order).reshape(out);
}

Tensor channel_shuffle(const Tensor& input, int64_t groups, SourceLoc place) {
  const char* op = "channel_shuffle";
  SourceLoc loc = user_loc(place);
  LocScope scope(loc);
  NodeRef x = node_of(input, op, loc);
  if (x->rank() < 3)
    fail(ErrorKind::Shape, op, "expects [batch, channels, ...], not " + describe(*x), loc);
  if (groups < 1 || x->shape[1] % groups)
    fail(ErrorKind::Value, op,
         std::to_string(groups) + " groups do not divide the channels of " + describe(*x), loc);
  const Dims shape = x->shape;
  return input.reshape({shape[0], groups, shape[1] / groups, -1}).transpose(1, 2).reshape(shape);
}

}  // namespace ingot
