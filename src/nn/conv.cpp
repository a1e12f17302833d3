// Convolutions and batch norms: parameters and the choice of the function; padding other than
// zeros is applied beforehand.
#include "ingot/nn/conv.h"

#include <cmath>

#include "graph/thread_state.h"
#include "ingot/autograd.h"
#include "ingot/movement.h"
#include "nn/layer_common.h"
#include "nn/module_state.h"

namespace ingot::nn {
namespace {

Dims per_dim(const PerDim& v, int dims, const char* what, const char* op, const SourceLoc& loc) {
  if (!v.given())
    fail(ErrorKind::Value, op, std::string(what) + " is not given", loc,
         "write {.kernel_size = 3}");
  if (v.values().size() != 1 && v.values().size() != dims)
    fail(ErrorKind::Value, op,
         std::string(what) + " has " + std::to_string(v.values().size()) + " values for " +
             std::to_string(dims) + " dims",
         loc);
  return v.values().size() == dims ? v.values() : Dims::filled(dims, v.values()[0]);
}

std::string text(const PerDim& v) {
  return v.values().size() == 1 ? std::to_string(v.values()[0]) : ingot::to_string(v.values());
}

}  // namespace

Conv::Conv(int dims, int64_t in_channels, int64_t out_channels, const ConvOptions& options,
           SourceLoc loc)
    : dims_(dims), transposed_(false), in_(in_channels), out_(out_channels), o_(options) {
  const std::string& mode = o_.padding_mode;
  if (mode != "zeros" && mode != "reflect" && mode != "replicate" && mode != "circular")
    fail(ErrorKind::Value, "Conv", "padding_mode is \"" + mode + "\"", user_loc(loc),
         "use \"zeros\", \"reflect\", \"replicate\" or \"circular\"");
  if (mode != "zeros" && !o_.padding.word().empty())
    fail(ErrorKind::Value, "Conv",
         "padding \"" + o_.padding.word() + "\" requires padding_mode \"zeros\"", user_loc(loc),
         "give the padding as numbers");
  make(out_channels, in_channels, loc);
}

Conv::Conv(int dims, int64_t in_channels, int64_t out_channels, const ConvTransposeOptions& t,
           SourceLoc loc)
    : dims_(dims),
      transposed_(true),
      in_(in_channels),
      out_(out_channels),
      o_{t.kernel_size, t.stride, ConvPadding(t.padding), t.dilation, t.groups, t.bias, "zeros",
         t.device,      t.dtype},
      output_padding_(t.output_padding) {
  make(in_channels, out_channels, loc);
}

// weight: [first, second / groups, kernel...]
void Conv::make(int64_t first, int64_t second, SourceLoc where) {
  SourceLoc loc = user_loc(where);
  LocScope scope(loc);
  const char* op = transposed_ ? "ConvTranspose" : "Conv";
  check_size(in_, "in_channels", op, loc);
  check_size(out_, "out_channels", op, loc);
  check_size(o_.groups, "groups", op, loc);
  if (in_ % o_.groups != 0 || out_ % o_.groups != 0)
    fail(ErrorKind::Value, op,
         "in_channels and out_channels must be multiples of groups = " + std::to_string(o_.groups),
         loc);
  Dims shape{first, second / o_.groups};
  int64_t fan_in = shape[1];
  for (int64_t k : per_dim(o_.kernel_size, dims_, "kernel_size", op, loc)) {
    check_size(k, "kernel_size", op, loc);
    shape.push_back(k);
    fan_in *= k;
  }
  const double bound = 1 / std::sqrt(static_cast<double>(fan_in));
  const auto made = [&](const Dims& s) { return rand(s, where_of(o_)) * (2 * bound) - bound; };
  register_parameter("weight", made(shape), loc);
  if (o_.bias) register_parameter("bias", made({out_}), loc);
}

Tensor Conv::bias() const { return o_.bias ? own(1) : Tensor(); }

Tensor Conv::forward(Tensor x) {
  const Tensor& w = own(0);
  if (transposed_) {
    const auto f = dims_ == 1 ? conv_transpose1d : dims_ == 2 ? conv_transpose2d : conv_transpose3d;
    return f(x, w, bias(), o_.stride, o_.padding, output_padding_, o_.groups, o_.dilation,
             SourceLoc::current());
  }
  const auto f = dims_ == 1 ? conv1d : dims_ == 2 ? conv2d : conv3d;
  if (o_.padding_mode == "zeros")
    return f(x, w, bias(), o_.stride, o_.padding, o_.dilation, o_.groups, SourceLoc::current());
  const Dims around = per_dim(o_.padding, dims_, "padding", "Conv", user_loc(SourceLoc::current()));
  Dims padding;  // from the last dim backwards, both sides
  for (int i = around.size() - 1; i >= 0; --i)
    for (int side = 0; side < 2; ++side) padding.push_back(around[i]);
  return f(pad(x, padding, o_.padding_mode), w, bias(), o_.stride, 0, o_.dilation, o_.groups,
           SourceLoc::current());
}

std::string Conv::description() const {
  return class_name(*this) + "(" + std::to_string(in_) + ", " + std::to_string(out_) +
         ", kernel_size=" + text(o_.kernel_size) + ", stride=" + text(o_.stride) +
         (o_.padding.word().empty() ? ", padding=" + text(o_.padding)
                                    : ", padding='" + o_.padding.word() + "'") +
         (o_.groups > 1 ? ", groups=" + std::to_string(o_.groups) : "") +
         (o_.bias ? "" : ", bias=False") + ")";
}

// ---- Batch normalisation

BatchNorm::BatchNorm(int dims, int64_t num_features, const BatchNormOptions& options,
                     SourceLoc where)
    : dims_(dims), features_(num_features), o_(options) {
  SourceLoc loc = user_loc(where);
  LocScope scope(loc);
  check_size(num_features, "num_features", "BatchNorm", loc);
  register_norm(*this, features_, o_, loc);
}

Tensor BatchNorm::weight() const { return o_.affine ? own(0) : Tensor(); }
Tensor BatchNorm::bias() const { return o_.affine ? own(1) : Tensor(); }
Tensor BatchNorm::running_mean() const {
  return o_.track_running_stats ? own(buffers()) : Tensor();
}
Tensor BatchNorm::running_var() const {
  return o_.track_running_stats ? own(buffers() + 1) : Tensor();
}

Tensor BatchNorm::forward(Tensor x) {
  const int rank = x.dim();
  if (rank != dims_ + 2 && !(dims_ == 1 && rank == 2))
    fail(ErrorKind::Shape, class_name(*this).c_str(),
         std::string("expects ") +
             (dims_ == 1   ? "[N, C] or [N, C, L]"
              : dims_ == 2 ? "[N, C, H, W]"
                           : "[N, C, D, H, W]") +
             ", not " + describe(x),
         user_loc(SourceLoc::current()));
  const bool moves = is_training() && o_.track_running_stats;
  double momentum = o_.momentum.value_or(0);
  if (moves) {
    NoGrad guard;
    Tensor count = own(buffers() + 2);
    if (!this_thread.recomputing) count.add_(1);
    if (!o_.momentum) momentum = 1 / count.item();
  }
  return batch_norm(x, running_mean(), running_var(), weight(), bias(),
                    is_training() || !o_.track_running_stats, momentum, o_.eps);
}

std::string BatchNorm::description() const {
  return class_name(*this) + "(" + std::to_string(features_) + ", eps=" + text_of(o_.eps) +
         ", momentum=" + (o_.momentum ? text_of(*o_.momentum) : "None") +
         ", affine=" + yes_no(o_.affine) +
         ", track_running_stats=" + yes_no(o_.track_running_stats) + ")";
}

}  // namespace ingot::nn
