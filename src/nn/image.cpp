// Norms over groups of channels, resizing and shuffles: parameters, and the call of the function.
#include "ingot/nn/image.h"

#include <algorithm>

#include "ingot/autograd.h"
#include "nn/layer_common.h"
#include "nn/module_state.h"

namespace ingot::nn {
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
         "expects [N, " + std::to_string(channels_) + ", ...], not " + describe(x),
         user_loc(SourceLoc::current()));
  return o_.affine ? group_norm(x, groups_, own(0), own(1), o_.eps)
                   : group_norm(x, groups_, {}, {}, o_.eps);
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
  register_norm(*this, features_, o_, loc);
}

Tensor InstanceNorm::forward(Tensor x) {
  if (x.dim() != dims_ + 2 && x.dim() != dims_ + 1)
    fail(ErrorKind::Shape, class_name(*this).c_str(),
         "expects " + std::to_string(dims_ + 2) + " dims, or one less without a batch, not " +
             describe(x),
         user_loc(SourceLoc::current()));
  if (x.dim() == dims_ + 1) return forward(x.unsqueeze(0)).squeeze(0);
  const size_t buffers = o_.affine ? 2 : 0;
  const Tensor weight = o_.affine ? own(0) : Tensor(), bias = o_.affine ? own(1) : Tensor();
  if (!o_.track_running_stats)
    return instance_norm(x, {}, {}, weight, bias, true, o_.momentum, o_.eps);
  if (is_training()) {
    NoGrad guard;
    Tensor count = own(buffers + 2);
    count.add_(1);
  }
  return instance_norm(x, own(buffers), own(buffers + 1), weight, bias, is_training(), o_.momentum,
                       o_.eps);
}

// ---- Resizing

Upsample::Upsample(const UpsampleOptions& options, SourceLoc where) : o_(options) {
  SourceLoc loc = user_loc(where);
  if (o_.size.given() == !o_.scale_factor.empty())
    fail(ErrorKind::Value, "Upsample", "needs either size or scale_factor", loc,
         "write {.scale_factor = {2}}");
  static constexpr std::string_view modes[] = {"nearest",   "nearest-exact", "linear", "bilinear",
                                               "trilinear", "bicubic",       "area"};
  if (std::find(std::begin(modes), std::end(modes), o_.mode) == std::end(modes))
    fail(ErrorKind::Value, "Upsample", "mode is \"" + o_.mode + "\"", loc,
         "use nearest, nearest-exact, linear, bilinear, trilinear, bicubic or area");
  for (double f : o_.scale_factor)
    if (!(f > 0)) fail(ErrorKind::Value, "Upsample", "scale_factor must be positive", loc);
}

Tensor Upsample::forward(Tensor x) {
  return interpolate(x, {.size = o_.size,
                         .scale_factor = o_.scale_factor,
                         .mode = o_.mode,
                         .align_corners = o_.align_corners});
}

// ---- Shuffles

Tensor PixelShuffle::forward(Tensor x) { return pixel_shuffle(x, r_); }
Tensor PixelUnshuffle::forward(Tensor x) { return pixel_unshuffle(x, r_); }

}  // namespace ingot::nn
