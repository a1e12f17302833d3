// Convolutions: the front end of three primitives, Conv and its two gradients. The transposed
// convolution is the gradient with respect to the input. Options are checked here, in the caller's
// words.
#include "graph/shape_rules.h"
#include "ops/autocast.h"
#include "ops/windows.h"

namespace ingot {
namespace {

std::string dims_word(int n) {
  return n == 1 ? "length" : n == 2 ? "height, width" : "depth, height, width";
}

struct Call {
  const char* op;
  int n;  // dims
  SourceLoc loc;
};

// The operands' ranks, types and channels. `in`: which dim of the weight counts the input's
// channels.
void check_operands(const Call& c, const Node* x, const Node* w, int64_t groups, bool transposed) {
  if (x->rank() != c.n + 2 && x->rank() != c.n + 1)
    fail(ErrorKind::Shape, c.op,
         "expects [batch, channels, " + dims_word(c.n) + "] or the same without batch, not " +
             describe(*x),
         c.loc, x->rank() == c.n ? "add a channel dim: x.unsqueeze(0)" : "");
  if (w->rank() != c.n + 2)
    fail(ErrorKind::Shape, c.op,
         std::string("the weight must be ") +
             (transposed ? "[in, out / groups, " : "[out, in / groups, ") + dims_word(c.n) +
             "], not " + describe(*w),
         c.loc);
  if (groups < 1)
    fail(ErrorKind::Value, c.op, "groups is " + std::to_string(groups), c.loc, "use 1 or more");
  const int64_t channels = x->shape[x->rank() - c.n - 1],
                wanted = transposed ? w->shape[0] : w->shape[1] * groups;
  if (w->shape[0] % groups || channels != wanted)
    fail(ErrorKind::Shape, c.op,
         "input " + describe(*x) + " has " + std::to_string(channels) + " channels; weight " +
             describe(*w) + " with " + std::to_string(groups) +
             (groups == 1 ? " group" : " groups") + " expects " + std::to_string(wanted) +
             (w->shape[0] % groups ? " and a first size that groups divides" : ""),
         c.loc);
  for (int d = 0; d < c.n; ++d)
    if (w->shape[2 + d] < 1)
      fail(ErrorKind::Shape, c.op, "the window of weight " + describe(*w) + " is empty", c.loc);
}

void check_bias(const Call& c, const Tensor& bias, int64_t out, const Node* w) {
  if (bias.defined() && !(bias.dim() == 1 && bias.size(0) == out))
    fail(ErrorKind::Shape, c.op,
         "the bias must be [" + std::to_string(out) + "] for weight " + describe(*w) + ", not " +
             describe(bias),
         c.loc);
}

// [1, C, 1, ...], beside the convolution's result.
Tensor spread(const Tensor& bias, int n) {
  Dims s = Dims::filled(n + 2, 1);
  s[1] = bias.size(0);
  return bias.reshape(s);
}

void set_padding(const Call& c, const ConvPadding& padding, const Dims& stride, const Dims& kernel,
                 const Dims& dilation, ConvAttrs& a) {
  Dims front = Dims::filled(c.n, 0), behind = front;
  if (padding.word() == "same") {
    for (int d = 0; d < c.n; ++d) {
      if (stride[d] != 1)
        fail(ErrorKind::Value, c.op, "padding \"same\" expects stride 1, not " + to_string(stride),
             c.loc, "give padding as numbers");
      const int64_t total = dilation[d] * (kernel[d] - 1);
      front[d] = total / 2;
      behind[d] = total - front[d];
    }
  } else if (padding.word().empty()) {
    front = behind = per_dim(padding, c.n, 0, "padding", c.op, c.loc);
  } else if (padding.word() != "valid") {
    fail(ErrorKind::Value, c.op, "padding is \"" + padding.word() + "\"", c.loc,
         "use \"same\", \"valid\" or numbers");
  }
  a.front = front;
  a.behind = behind;
}

Tensor conv(const Call& c, const Tensor& input, const Tensor& weight, const Tensor& bias,
            const PerDim& stride, const ConvPadding& padding, const PerDim& dilation,
            int64_t groups) {
  LocScope scope(c.loc);
  if (autocasting()) {
    const Tensor x = lowered(input), w = lowered(weight), b = lowered(bias);
    if (x.cell() != input.cell() || w.cell() != weight.cell())
      return conv(c, x, w, b, stride, padding, dilation, groups);
  }
  NodeRef x = node_of(input, c.op, c.loc), w = node_of(weight, c.op, c.loc);
  check_operands(c, x, w, groups, false);
  check_bias(c, bias, w->shape[0], w);
  const bool single = x->rank() == c.n + 1;
  Tensor batch = single ? input.unsqueeze(0) : input;
  x = node_of(batch, c.op, c.loc);
  ConvAttrs a;
  a.groups = groups;
  a.stride = per_dim(stride, c.n, 1, "stride", c.op, c.loc);
  a.dilation = per_dim(dilation, c.n, 1, "dilation", c.op, c.loc);
  set_padding(c, padding, a.stride, Dims(w->shape.begin() + 2, c.n), a.dilation, a);
  for (int d = 0; d < c.n; ++d)
    if (window_count(x->shape[2 + d], w->shape[2 + d], a.stride[d], a.dilation[d], a.front[d],
                     a.behind[d]) < 1)
      fail(ErrorKind::Shape, c.op,
           "the window of weight " + describe(*w) + " with dilation " + to_string(a.dilation) +
               " does not fit into " + describe(*x) + " with padding " + to_string(a.front) +
               (a.front == a.behind ? "" : " before and " + to_string(a.behind) + " after"),
           c.loc, "pad the input, or use a smaller window");
  // The bias is recorded before the product, so that the two can be one call.
  Tensor b = bias.defined() ? spread(bias, c.n) : bias;
  Tensor y = tensor_of(record(Op::Conv, {x, w}, {a}, c.loc));
  if (b.defined()) y = y + b;
  return single ? y.squeeze(0) : y;
}

Tensor conv_transpose(const Call& c, const Tensor& input, const Tensor& weight, const Tensor& bias,
                      const PerDim& stride, const PerDim& padding, const PerDim& output_padding,
                      int64_t groups, const PerDim& dilation) {
  LocScope scope(c.loc);
  if (autocasting()) {
    const Tensor x = lowered(input), w = lowered(weight), b = lowered(bias);
    if (x.cell() != input.cell() || w.cell() != weight.cell())
      return conv_transpose(c, x, w, b, stride, padding, output_padding, groups, dilation);
  }
  NodeRef x = node_of(input, c.op, c.loc), w = node_of(weight, c.op, c.loc);
  check_operands(c, x, w, groups, true);
  check_bias(c, bias, w->shape[1] * groups, w);
  const bool single = x->rank() == c.n + 1;
  Tensor batch = single ? input.unsqueeze(0) : input;
  x = node_of(batch, c.op, c.loc);
  ConvAttrs a;
  a.groups = groups;
  a.stride = per_dim(stride, c.n, 1, "stride", c.op, c.loc);
  a.dilation = per_dim(dilation, c.n, 1, "dilation", c.op, c.loc);
  a.front = per_dim(padding, c.n, 0, "padding", c.op, c.loc);
  const Dims more = per_dim(output_padding, c.n, 0, "output_padding", c.op, c.loc);
  Dims shape{x->shape[0], w->shape[1] * groups};
  for (int d = 0; d < c.n; ++d) {
    if (more[d] >= std::max(a.stride[d], a.dilation[d]))
      fail(ErrorKind::Value, c.op,
           "output_padding " + to_string(more) + " must be smaller than stride or dilation (" +
               to_string(a.stride) + ", " + to_string(a.dilation) + ")",
           c.loc);
    const int64_t reach =
        (x->shape[2 + d] - 1) * a.stride[d] + a.dilation[d] * (w->shape[2 + d] - 1) + 1;
    shape.push_back(reach - 2 * a.front[d] + more[d]);
    if (shape.back() < 1 || x->shape[2 + d] < 1)
      fail(ErrorKind::Shape, c.op,
           "the result of " + describe(*x) + " and weight " + describe(*w) + " would have size " +
               std::to_string(shape.back()),
           c.loc, "use less padding");
  }
  // As many windows as the input has elements: what output_padding adds past a stride comes off the
  // padding after it, and what is then left is beyond every window.
  a.behind = a.front;
  Dims beyond = Dims::filled(c.n, 0);
  for (int d = 0; d < c.n; ++d) {
    const int64_t excess = std::max<int64_t>(0, more[d] - (a.stride[d] - 1)),
                  taken = std::min(excess, a.front[d]);
    a.behind[d] -= taken;
    beyond[d] = excess - taken;
    shape[2 + d] -= beyond[d];
  }
  Tensor b = bias.defined() ? spread(bias, c.n) : bias;
  Tensor y = tensor_of(record(Op::ConvGradInput, {x, w}, {a, shape}, c.loc));
  y = pad_last(y, Dims::filled(c.n, 0), beyond, 0, c.loc);
  if (b.defined()) y = y + b;
  return single ? y.squeeze(0) : y;
}

}  // namespace

#define INGOT_CONV(N)                                                                              \
  Tensor conv##N##d(const Tensor& input, const Tensor& weight, const Tensor& bias,                 \
                    const PerDim& stride, const ConvPadding& padding, const PerDim& dilation,      \
                    int64_t groups, SourceLoc loc) {                                               \
    return conv({"conv" #N "d", N, user_loc(loc)}, input, weight, bias, stride, padding, dilation, \
                groups);                                                                           \
  }                                                                                                \
  Tensor conv_transpose##N##d(const Tensor& input, const Tensor& weight, const Tensor& bias,       \
                              const PerDim& stride, const PerDim& padding,                         \
                              const PerDim& output_padding, int64_t groups,                        \
                              const PerDim& dilation, SourceLoc loc) {                             \
    return conv_transpose({"conv_transpose" #N "d", N, user_loc(loc)}, input, weight, bias,        \
                          stride, padding, output_padding, groups, dilation);                      \
  }
INGOT_CONV(1)
INGOT_CONV(2)
INGOT_CONV(3)
#undef INGOT_CONV

}  // namespace ingot
