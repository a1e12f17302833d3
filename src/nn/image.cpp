#include "ingot/nn/image.h"

#include <cmath>

#include "ingot/autograd.h"
#include "nn/layer_common.h"
#include "nn/module_state.h"

namespace ingot::nn {
namespace {

// Normalised over groups of channels, in float32 for 16-bit types.
Tensor normalised(const Tensor& x, int64_t groups, double eps) {
  const int64_t each = groups * x.size(0) == 0 ? 0 : x.numel() / (x.size(0) * groups);
  Tensor rows = x.reshape({x.size(0), groups, each});
  return layer_norm(rows, {each}, {}, {}, eps).reshape(x.shape());
}

Tensor per_channel(const Tensor& t, const Tensor& x) {
  Dims shape = Dims::filled(x.dim(), 1);
  shape[1] = t.numel();
  return t.reshape(shape);
}

}  // namespace

GroupNorm::GroupNorm(int64_t num_groups, int64_t num_channels, const GroupNormOptions& options,
                     SourceLoc where)
    : groups_(num_groups), channels_(num_channels), o_(options) {
  SourceLoc loc = user_loc(where);
  LocScope scope(loc);
  check_size(num_groups, "num_groups", "GroupNorm", loc);
  if (num_channels < 1 || num_channels % num_groups != 0)
    fail(ErrorKind::Value, "GroupNorm",
         "num_channels " + std::to_string(num_channels) + " is not a multiple of num_groups " +
             std::to_string(num_groups),
         loc);
  if (!o_.affine) return;
  register_parameter("weight", ones({num_channels}, where_of(o_)), loc);
  register_parameter("bias", zeros({num_channels}, where_of(o_)), loc);
}

Tensor GroupNorm::forward(Tensor x) {
  if (x.dim() < 2 || x.size(1) != channels_)
    fail(ErrorKind::Shape, "GroupNorm",
         "wants [N, " + std::to_string(channels_) + ", ...], not " + describe(x),
         user_loc(SourceLoc::current()));
  Tensor y = normalised(x, groups_, o_.eps);
  return o_.affine ? (y * per_channel(own(0), x) + per_channel(own(1), x)).to(y.dtype()) : y;
}

std::string GroupNorm::description() const {
  return "GroupNorm(" + std::to_string(groups_) + ", " + std::to_string(channels_) +
         ", eps=" + text_of(o_.eps) + ", affine=" + yes_no(o_.affine) + ")";
}

InstanceNorm::InstanceNorm(int dims, int64_t num_features, const InstanceNormOptions& options,
                           SourceLoc where)
    : dims_(dims), features_(num_features), o_(options) {
  SourceLoc loc = user_loc(where);
  LocScope scope(loc);
  check_size(num_features, "num_features", "InstanceNorm", loc);
  const Options made = where_of(o_);
  if (o_.affine) {
    register_parameter("weight", ones({features_}, made), loc);
    register_parameter("bias", zeros({features_}, made), loc);
  }
  if (!o_.track_running_stats) return;
  register_buffer("running_mean", zeros({features_}, made), true, loc);
  register_buffer("running_var", ones({features_}, made), true, loc);
  Options count = made;
  count.dtype = int64;
  register_buffer("num_batches_tracked", zeros({}, count), true, loc);
}

Tensor InstanceNorm::forward(Tensor x) {
  if (x.dim() != dims_ + 2 && x.dim() != dims_ + 1)
    fail(ErrorKind::Shape, class_name(*this).c_str(),
         "wants " + std::to_string(dims_ + 2) + " dims, or one less without a batch, not " + describe(x),
         user_loc(SourceLoc::current()));
  if (x.dim() == dims_ + 1) return forward(x.unsqueeze(0)).squeeze(0);
  const size_t buffers = o_.affine ? 2 : 0;
  const Tensor weight = o_.affine ? own(0) : Tensor(), bias = o_.affine ? own(1) : Tensor();
  if (o_.track_running_stats && !is_training())
    return batch_norm(x, own(buffers), own(buffers + 1), weight, bias, false, o_.momentum, o_.eps);
  if (o_.track_running_stats) {
    NoGrad guard;
    const Tensor flat = x.detach().flatten(2);
    Tensor mean = own(buffers), var = own(buffers + 1), count = own(buffers + 2);
    mean.copy_(mean * (1 - o_.momentum) + flat.mean(2).mean(0) * o_.momentum);
    var.copy_(var * (1 - o_.momentum) + flat.var(2).mean(0) * o_.momentum);
    count.add_(1);
  }
  Tensor y = normalised(x, x.size(1), o_.eps);
  return o_.affine ? (y * per_channel(weight, x) + per_channel(bias, x)).to(y.dtype()) : y;
}

// ---- Resizing

Upsample::Upsample(const UpsampleOptions& options, SourceLoc where) : o_(options) {
  SourceLoc loc = user_loc(where);
  if (o_.size.given() == !o_.scale_factor.empty())
    fail(ErrorKind::Value, "Upsample", "needs either size or scale_factor", loc,
         "write {.scale_factor = {2}}");
  if (o_.mode != "nearest" && o_.mode != "linear" && o_.mode != "bilinear" && o_.mode != "trilinear")
    fail(ErrorKind::Value, "Upsample", "mode is \"" + o_.mode + "\"", loc,
         "use \"nearest\", \"linear\", \"bilinear\" or \"trilinear\"");
  for (double f : o_.scale_factor)
    if (!(f > 0)) fail(ErrorKind::Value, "Upsample", "scale_factor must be positive", loc);
}

Tensor Upsample::forward(Tensor x) {
  SourceLoc loc = user_loc(SourceLoc::current());
  const int dims = x.dim() - 2, wanted = o_.mode == "linear"      ? 1
                                         : o_.mode == "bilinear"  ? 2
                                         : o_.mode == "trilinear" ? 3
                                                                  : dims;
  const size_t given =
      o_.size.given() ? static_cast<size_t>(o_.size.values().size()) : o_.scale_factor.size();
  if (dims < 1 || dims > 3 || dims != wanted || (given != 1 && given != static_cast<size_t>(dims)))
    fail(ErrorKind::Shape, "Upsample",
         "mode \"" + o_.mode + "\" and " + std::to_string(given) + " sizes do not fit " + describe(x), loc);
  for (int i = 0; i < dims; ++i) {
    const int64_t dim = i + 2, in = x.size(dim);
    const size_t at = given == 1 ? 0 : static_cast<size_t>(i);
    const double factor = o_.size.given() ? 0 : o_.scale_factor[at];
    const int64_t out = factor > 0 ? static_cast<int64_t>(std::floor(static_cast<double>(in) * factor))
                                   : o_.size.values()[static_cast<int>(at)];
    if (out < 1 || in < 1)
      fail(ErrorKind::Shape, "Upsample", "the result of " + describe(x) + " would be empty", loc);
    if (out == in && factor <= 0) continue;
    const double step = factor > 0 ? 1 / factor : static_cast<double>(in) / static_cast<double>(out);
    Tensor place = arange(out, x.device()).to(float64);
    if (o_.mode == "nearest") {
      x = x.index_select(dim, clamp(floor(place * step), 0, in - 1).to(int64));
      continue;
    }
    const double corner = out > 1 ? static_cast<double>(in - 1) / static_cast<double>(out - 1) : 0;
    Tensor from = o_.align_corners ? place * corner : clamp_min((place + 0.5) * step - 0.5, 0.0);
    Tensor low = clamp_max(floor(from), static_cast<double>(in - 1)),
           high = clamp_max(low + 1.0, static_cast<double>(in - 1));
    Dims shape = Dims::filled(x.dim(), 1);
    shape[static_cast<int>(dim)] = out;
    Tensor share = (from - low).to(x.dtype()).reshape(shape);
    Tensor a = x.index_select(dim, low.to(int64)), b = x.index_select(dim, high.to(int64));
    x = a * (1.0 - share) + b * share;
  }
  return x;
}

// ---- Shuffles

Tensor PixelShuffle::forward(Tensor x) {
  const int rank = x.dim();
  if (r_ < 1 || rank < 3 || x.size(-3) % (r_ * r_) != 0)
    fail(ErrorKind::Shape, "PixelShuffle",
         "wants [..., C * " + std::to_string(r_ * r_) + ", H, W], not " + describe(x),
         user_loc(SourceLoc::current()));
  Dims before = x.shape(), order, after = x.shape();
  const int64_t c = x.size(-3) / (r_ * r_), h = x.size(-2), w = x.size(-1);
  const int lead = rank - 3;
  before.resize(lead);
  for (int64_t n : {c, r_, r_, h, w}) before.push_back(n);
  for (int i = 0; i < lead; ++i) order.push_back(i);
  for (int64_t i : {0, 3, 1, 4, 2}) order.push_back(lead + i);
  after[lead] = c, after[lead + 1] = h * r_, after[lead + 2] = w * r_;
  return x.reshape(before).permute(order).reshape(after);
}

Tensor PixelUnshuffle::forward(Tensor x) {
  const int rank = x.dim();
  if (r_ < 1 || rank < 3 || x.size(-2) % r_ != 0 || x.size(-1) % r_ != 0)
    fail(ErrorKind::Shape, "PixelUnshuffle",
         "wants sides that are multiples of " + std::to_string(r_) + ", not " + describe(x),
         user_loc(SourceLoc::current()));
  Dims before = x.shape(), order, after = x.shape();
  const int64_t c = x.size(-3), h = x.size(-2) / r_, w = x.size(-1) / r_;
  const int lead = rank - 3;
  before.resize(lead);
  for (int64_t n : {c, h, r_, w, r_}) before.push_back(n);
  for (int i = 0; i < lead; ++i) order.push_back(i);
  for (int64_t i : {0, 2, 4, 1, 3}) order.push_back(lead + i);
  after[lead] = c * r_ * r_, after[lead + 1] = h, after[lead + 2] = w;
  return x.reshape(before).permute(order).reshape(after);
}

}  // namespace ingot::nn
