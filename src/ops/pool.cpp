// Pooling: reductions over windows. A window is a view of overlapping parts (ops/windows.h), so
// what comes before and after a pooling fuses with it.
#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/windows.h"

namespace ingot {
namespace {

struct Call {
  const char* op;
  int n;
  SourceLoc loc;
};

Node* checked(const Call& c, const Tensor& input, bool floating) {
  NodeRef x = node_of(input, c.op, c.loc);
  if (x->rank() != c.n + 2 && x->rank() != c.n + 1)
    fail(ErrorKind::Shape, c.op,
         "expects [batch, channels and " + std::to_string(c.n) + (c.n == 1 ? " dim" : " dims") +
             "] or the same without batch, not " + describe(*x),
         c.loc);
  if (floating ? !is_float(x->dtype) : x->dtype == DType::Bool)
    fail(ErrorKind::DType, c.op,
         "needs " + std::string(floating ? "a floating type" : "numbers") + ", not " + describe(*x),
         c.loc, "convert with .to(float32)");
  return x;
}

// Smaller than every number of the type: what max pooling pads with.
double lowest(DType t) {
  switch (t) {
    case DType::Int64:
      return -0x1p63;
    case DType::Int32:
      return -0x1p31;
    case DType::Int16:
      return -0x1p15;
    case DType::Int8:
      return -128;
    case DType::UInt8:
      return 0;
    default:
      return -std::numeric_limits<double>::infinity();
  }
}

Windows windows_of(const Call& c, const Node* x, const PerDim& kernel, const PerDim& stride,
                   const PerDim& padding, const PerDim& dilation, bool ceil_mode) {
  Windows w;
  w.kernel = per_dim(kernel, c.n, 1, "kernel_size", c.op, c.loc);
  w.stride = stride.given() ? per_dim(stride, c.n, 1, "stride", c.op, c.loc) : w.kernel;
  w.dilation = per_dim(dilation, c.n, 1, "dilation", c.op, c.loc);
  w.front = per_dim(padding, c.n, 0, "padding", c.op, c.loc);
  w.behind = w.front;
  for (int d = 0; d < c.n; ++d) {
    const int64_t size = x->shape[x->rank() - c.n + d], pad = w.front[d], s = w.stride[d];
    if (pad * 2 > w.kernel[d])
      fail(ErrorKind::Value, c.op,
           "padding " + to_string(w.front) + " is more than half of kernel_size " +
               to_string(w.kernel),
           c.loc, "pad the input with pad() first");
    const int64_t reach = w.dilation[d] * (w.kernel[d] - 1) + 1, room = size + 2 * pad - reach;
    int64_t count = room < 0 ? 0 : (room + (ceil_mode ? s - 1 : 0)) / s + 1;
    if (room < 0 && ceil_mode && room + s - 1 >= 0) count = (room + s - 1) / s + 1;
    if (ceil_mode && count > 0 && (count - 1) * s >= size + pad)
      --count;  // the last window begins inside
    if (count < 1 || size < 1)
      fail(ErrorKind::Shape, c.op,
           "windows of " + to_string(w.kernel) + " with padding " + to_string(w.front) +
               " do not fit into " + describe(*x),
           c.loc);
    w.behind[d] = std::max<int64_t>(0, (count - 1) * s + reach - size - pad);
  }
  return w;
}

Axes last_axes(int rank, int n) {
  Dims axes;
  for (int d = 0; d < n; ++d) axes.push_back(rank - n + d);
  return axes;
}

Tensor max_pool(const Call& c, const Tensor& input, const PerDim& kernel, const PerDim& stride,
                const PerDim& padding, const PerDim& dilation, bool ceil_mode) {
  LocScope scope(c.loc);
  Node* x = checked(c, input, false);
  Windows w = windows_of(c, x, kernel, stride, padding, dilation, ceil_mode);
  w.fill = lowest(x->dtype);
  return windowed_max(input, w, c.loc);
}

// The index in the input's flattened last dims of each window's largest element.
Tensor max_places(const Tensor& input, const Windows& w, const SourceLoc& loc) {
  Tensor at = windowed_argmax(input, w, loc).to(DType::Int64);
  const int n = w.n(), lead = at.dim() - n;
  Tensor place = scalar(int64_t{0}, {DType::Int64, input.device()});
  int64_t after = w.kernel.numel();
  for (int d = 0; d < n; ++d) {
    after /= w.kernel[d];
    Tensor in_window = remainder(floor_divide(at, after), w.kernel[d]);
    Dims along = Dims::filled(n, 1);
    along[d] = at.size(lead + d);
    Tensor begin =
        arange(at.size(lead + d), {DType::Int64, input.device()}).reshape(along) * w.stride[d] -
        w.front[d];
    place = place * input.size(lead + d) + begin + in_window * w.dilation[d];
  }
  return place;
}

ValuesIndices max_pool_indices(const Call& c, const Tensor& input, const PerDim& kernel,
                               const PerDim& stride, const PerDim& padding, const PerDim& dilation,
                               bool ceil_mode) {
  LocScope scope(c.loc);
  Node* x = checked(c, input, false);
  Windows w = windows_of(c, x, kernel, stride, padding, dilation, ceil_mode);
  w.fill = lowest(x->dtype);
  return {windowed_max(input, w, c.loc), max_places(input, w, c.loc)};
}

// How many elements each window has along dim d: [O, 1, ..].
Tensor window_sizes(const Windows& w, int d, int64_t size, bool with_padding, const Options& o,
                    const SourceLoc& loc) {
  const int64_t count = w.count(d, size), pad = w.front[d];
  Tensor begin = arange(count, {DType::Int64, *o.device}, loc) * w.stride[d] - pad;
  Tensor end = minimum(begin + w.kernel[d], with_padding ? size + pad : size);
  if (!with_padding) begin = maximum(begin, int64_t{0});
  Dims s = Dims::filled(w.n() - d, 1);
  s[0] = count;
  return (end - begin).to(*o.dtype).reshape(s);
}

Tensor avg_pool(const Call& c, const Tensor& input, const PerDim& kernel, const PerDim& stride,
                const PerDim& padding, bool ceil_mode, bool count_include_pad,
                std::optional<int64_t> divisor) {
  LocScope scope(c.loc);
  Node* x = checked(c, input, true);
  if (divisor && *divisor == 0)
    fail(ErrorKind::Value, c.op, "divisor_override is 0", c.loc,
         "leave it out to divide by the count");
  const Windows w = windows_of(c, x, kernel, stride, padding, 1, ceil_mode);
  const DType t = x->dtype, wide = is_half(t) ? DType::Float32 : t;
  Tensor view = window_view(input.to(wide), w, c.loc);
  Tensor sum = view.sum(last_axes(view.dim(), c.n));
  const int lead = x->rank() - c.n;
  bool all_full = true;
  for (int d = 0; d < c.n; ++d)
    all_full =
        all_full && (count_include_pad ? w.behind[d] <= w.front[d] : w.front[d] + w.behind[d] == 0);
  if (divisor) {
    sum = sum / static_cast<double>(*divisor);
  } else if (all_full) {
    sum = sum * (1.0 / static_cast<double>(w.kernel.numel()));
  } else {
    Tensor count;
    for (int d = 0; d < c.n; ++d) {
      Tensor size =
          window_sizes(w, d, x->shape[lead + d], count_include_pad, {wide, x->device}, c.loc);
      count = count.defined() ? count * size : size;
    }
    sum = sum / count;
  }
  return sum.to(t);
}

Tensor lp_pool(const Call& c, const Tensor& input, double p, const PerDim& kernel,
               const PerDim& stride, bool ceil_mode) {
  LocScope scope(c.loc);
  Node* x = checked(c, input, true);
  if (!(p > 0))
    fail(ErrorKind::Value, c.op, "norm_type is " + text_of(p), c.loc, "use a number above 0");
  if (std::isinf(p)) return max_pool(c, input, kernel, stride, 0, 1, ceil_mode);
  const Windows w = windows_of(c, x, kernel, stride, 0, 1, ceil_mode);
  const DType t = x->dtype, wide = is_half(t) ? DType::Float32 : t;
  Tensor view = window_view(pow(input.to(wide), p), w, c.loc);
  Tensor sum = view.sum(last_axes(view.dim(), c.n));
  return pow(sign(sum) * relu(abs(sum)), 1.0 / p).to(t);
}

// ---- Adaptive pooling: part o of a dim of size L is [floor(o L / O), ceil((o + 1) L / O)).

Dims output_sizes(const Call& c, const Node* x, const PerDim& output) {
  Dims o = per_dim(output, c.n, -1, "output_size", c.op, c.loc);
  for (int d = 0; d < c.n; ++d) {
    const int64_t size = x->shape[x->rank() - c.n + d];
    if (o[d] == -1) o[d] = size;
    if (o[d] < 1)
      fail(ErrorKind::Value, c.op, "output_size " + to_string(o) + " must be at least 1", c.loc,
           "-1 keeps a size");
    if (size < 1)
      fail(ErrorKind::Shape, c.op, "needs an input with elements, not " + describe(*x), c.loc);
  }
  return o;
}

bool divides(const Node* x, const Dims& o, Windows& w) {
  const int n = o.size();
  for (int d = 0; d < n; ++d) {
    const int64_t size = x->shape[x->rank() - n + d];
    if (size % o[d]) return false;
    w.kernel.push_back(size / o[d]);
  }
  w.stride = w.kernel;
  w.dilation = Dims::filled(n, 1);
  w.front = w.behind = Dims::filled(n, 0);
  return true;
}

int64_t part_begin(int64_t o, int64_t size, int64_t parts) { return o * size / parts; }
int64_t part_end(int64_t o, int64_t size, int64_t parts) {
  return ((o + 1) * size + parts - 1) / parts;
}

// Along one dim: the parts' means as a product with a matrix of shares.
Tensor mean_parts(const Tensor& x, int dim, int64_t parts, const SourceLoc& loc) {
  const int64_t size = x.size(dim);
  if (size == parts) return x;
  std::vector<double> share(static_cast<size_t>(size * parts), 0);
  for (int64_t o = 0; o < parts; ++o) {
    const int64_t b = part_begin(o, size, parts), e = part_end(o, size, parts);
    for (int64_t i = b; i < e; ++i)
      share[static_cast<size_t>(i * parts + o)] = 1.0 / static_cast<double>(e - b);
  }
  Tensor m = tensor(share, {size, parts}).to(x.dtype()).to(x.device());
  return matmul(x.transpose(dim, -1), m, loc).transpose(dim, -1);
}

Tensor max_parts(const Tensor& x, int dim, int64_t parts) {
  const int64_t size = x.size(dim);
  if (size == parts) return x;
  int64_t longest = 0;
  for (int64_t o = 0; o < parts; ++o)
    longest = std::max(longest, part_end(o, size, parts) - part_begin(o, size, parts));
  std::vector<int64_t> at;  // a short part names its last element again
  for (int64_t o = 0; o < parts; ++o)
    for (int64_t k = 0; k < longest; ++k)
      at.push_back(std::min(part_begin(o, size, parts) + k, part_end(o, size, parts) - 1));
  Tensor picked = index_select(x, dim, tensor(at).to(x.device()));
  Dims s = x.shape();
  s[dim] = parts;
  s.insert(dim + 1, longest);
  return max(picked.reshape(s), dim + 1).values;
}

Tensor adaptive(const Call& c, const Tensor& input, const PerDim& output, bool largest) {
  LocScope scope(c.loc);
  Node* x = checked(c, input, true);
  const Dims o = output_sizes(c, x, output);
  for (int64_t size : o)  // a table of the parts is made on the host
    if (size > int64_t{1} << 28)
      fail(ErrorKind::Shape, c.op, "an output of " + std::to_string(size) + " parts is too large",
           c.loc, "give at most 2^28");
  const DType t = x->dtype, wide = is_half(t) ? DType::Float32 : t;
  Windows w;
  if (divides(x, o, w)) {
    if (largest) {
      w.fill = lowest(t);
      return windowed_max(input, w, c.loc);
    }
    // All of it is one window: a plain mean, whose gradient is spread without any windows.
    if (o.numel() == 1) return input.to(wide).mean(last_axes(x->rank(), c.n), true).to(t);
    Tensor view = window_view(input.to(wide), w, c.loc);
    return view.mean(last_axes(view.dim(), c.n)).to(t);
  }
  Tensor y = largest ? input : input.to(wide);
  for (int d = 0; d < c.n; ++d) {
    const int dim = x->rank() - c.n + d;
    y = largest ? max_parts(y, dim, o[d]) : mean_parts(y, dim, o[d], c.loc);
  }
  return y.to(t);
}

}  // namespace

#define INGOT_POOL(N)                                                                              \
  Tensor max_pool##N##d(const Tensor& input, const PerDim& kernel_size, const PerDim& stride,      \
                        const PerDim& padding, const PerDim& dilation, bool ceil_mode,             \
                        SourceLoc loc) {                                                           \
    return max_pool({"max_pool" #N "d", N, user_loc(loc)}, input, kernel_size, stride, padding,    \
                    dilation, ceil_mode);                                                          \
  }                                                                                                \
  ValuesIndices max_pool##N##d_with_indices(                                                       \
      const Tensor& input, const PerDim& kernel_size, const PerDim& stride, const PerDim& padding, \
      const PerDim& dilation, bool ceil_mode, SourceLoc loc) {                                     \
    return max_pool_indices({"max_pool" #N "d_with_indices", N, user_loc(loc)}, input,             \
                            kernel_size, stride, padding, dilation, ceil_mode);                    \
  }                                                                                                \
  Tensor lp_pool##N##d(const Tensor& input, double norm_type, const PerDim& kernel_size,           \
                       const PerDim& stride, bool ceil_mode, SourceLoc loc) {                      \
    return lp_pool({"lp_pool" #N "d", N, user_loc(loc)}, input, norm_type, kernel_size, stride,    \
                   ceil_mode);                                                                     \
  }                                                                                                \
  Tensor adaptive_avg_pool##N##d(const Tensor& input, const PerDim& output_size, SourceLoc loc) {  \
    return adaptive({"adaptive_avg_pool" #N "d", N, user_loc(loc)}, input, output_size, false);    \
  }                                                                                                \
  Tensor adaptive_max_pool##N##d(const Tensor& input, const PerDim& output_size, SourceLoc loc) {  \
    return adaptive({"adaptive_max_pool" #N "d", N, user_loc(loc)}, input, output_size, true);     \
  }
INGOT_POOL(1)
INGOT_POOL(2)
INGOT_POOL(3)
#undef INGOT_POOL

Tensor avg_pool1d(const Tensor& input, const PerDim& kernel_size, const PerDim& stride,
                  const PerDim& padding, bool ceil_mode, bool count_include_pad, SourceLoc loc) {
  return avg_pool({"avg_pool1d", 1, user_loc(loc)}, input, kernel_size, stride, padding, ceil_mode,
                  count_include_pad, {});
}
Tensor avg_pool2d(const Tensor& input, const PerDim& kernel_size, const PerDim& stride,
                  const PerDim& padding, bool ceil_mode, bool count_include_pad,
                  std::optional<int64_t> divisor_override, SourceLoc loc) {
  return avg_pool({"avg_pool2d", 2, user_loc(loc)}, input, kernel_size, stride, padding, ceil_mode,
                  count_include_pad, divisor_override);
}
Tensor avg_pool3d(const Tensor& input, const PerDim& kernel_size, const PerDim& stride,
                  const PerDim& padding, bool ceil_mode, bool count_include_pad,
                  std::optional<int64_t> divisor_override, SourceLoc loc) {
  return avg_pool({"avg_pool3d", 3, user_loc(loc)}, input, kernel_size, stride, padding, ceil_mode,
                  count_include_pad, divisor_override);
}

}  // namespace ingot
