// Losses. Cross entropy is logsumexp minus the logit of the label, so that no [N, C] value is kept
// but the input.
#include <limits>

#include "ops/autocast.h"
#include "ops/reduction.h"

namespace ingot {
namespace {

DType wide(DType t) { return is_half(t) ? DType::Float32 : t; }

// Input [N, C, ...] or [C]; target the same without C. Returns the dim of the classes.
int class_dim(const Tensor& input, const Tensor& target, const char* op, const SourceLoc& loc) {
  NodeRef x = node_of(input, op, loc), y = node_of(target, op, loc);
  if (!is_float(x->dtype))
    fail(ErrorKind::DType, op, "the input must be floating, not " + describe(input), loc,
         "convert with .to(float32)");
  if (y->dtype != DType::Int64 && y->dtype != DType::Int32)
    fail(ErrorKind::DType, op,
         "the target holds class numbers, int64 or int32, not " + describe(target), loc,
         "convert with .to(int64)");
  int d = x->rank() >= 2 ? 1 : 0;
  Dims want = x->shape;
  if (x->rank() >= 1) want.erase(d);
  if (x->rank() == 0 || !(want == y->shape))
    fail(ErrorKind::Shape, op,
         "the target must have the input's shape without the class dim: " + describe(input) +
             " against target " + describe(target),
         loc,
         y->rank() > 0 && y->rank() == x->rank() && y->shape.back() == 1
             ? "drop the last dim: target.squeeze(-1)"
         : x->rank() == 3 && y->rank() == 2 && x->shape[0] == y->shape[0] &&
                 x->shape[1] == y->shape[1]
             ? "flatten both: cross_entropy(x.flatten(0, 1), target.flatten())"
             : "the target must be " + to_string(want));
  return d;
}

// weight: what each target counts, 0 where it is ignored.
Tensor reduce(const Tensor& loss, const Tensor& weight, Reduction how) {
  if (how == Reduction::None) return loss;
  if (how == Reduction::Sum) return loss.sum();
  // Divided before the sum: the rows then depend on the count alone, and their gradient can be
  // computed with them.
  if (loss.numel() == 0)  // the mean of nothing
    return loss.sum() + std::numeric_limits<double>::quiet_NaN();
  return (loss / weight.to(loss.dtype()).sum()).sum();
}

// The classes' weights in the type of the computation; undefined when there are none.
Tensor class_weights(const CrossEntropyOptions& o, const Tensor& input, int d, const char* op,
                     const SourceLoc& loc) {
  if (!o.weight.defined()) return {};
  NodeRef w = node_of(o.weight, op, loc), x = node_of(input, op, loc);
  if (w->rank() != 1 || w->shape[0] != x->shape[d] || !is_float(w->dtype))
    fail(is_float(w->dtype) ? ErrorKind::Shape : ErrorKind::DType, op,
         "the weight must be floating, one number for each of the " + std::to_string(x->shape[d]) +
             " classes, not " + describe(o.weight),
         loc);
  return o.weight.to(wide(x->dtype));
}

// weight[label] in label's shape.
Tensor weight_of(const Tensor& weight, const Tensor& label) {
  return embedding(weight.unsqueeze(1), label).squeeze(-1);
}

// A [C] vector along dim d of a tensor of this rank.
Tensor along(const Tensor& weight, int d, int rank) {
  Dims line = Dims::filled(rank, 1);
  line[d] = weight.size(0);
  return weight.reshape(line);
}

void check_smoothing(double s, const SourceLoc& loc) {
  if (!(s >= 0 && s <= 1))
    fail(ErrorKind::Value, "cross_entropy",
         "label_smoothing must be between 0 and 1, not " + text_of(s), loc);
}

}  // namespace

namespace {

// Targets that are probabilities: -(target * weight * log_softmax(input)) summed over the classes.
Tensor soft_cross_entropy(const Tensor& input, const Tensor& target, const CrossEntropyOptions& o,
                          Reduction how, const SourceLoc& loc) {
  NodeRef n = node_of(input, "cross_entropy", loc), y = node_of(target, "cross_entropy", loc);
  if (!(n->shape == y->shape) || n->rank() == 0 || !is_float(n->dtype))
    fail(is_float(n->dtype) ? ErrorKind::Shape : ErrorKind::DType, "cross_entropy",
         "probabilities as the target need the input's shape and floating types: " +
             describe(input) + " and " + describe(target),
         loc, "class numbers must be int64 or int32");
  int d = n->rank() >= 2 ? 1 : 0;
  Tensor weight = class_weights(o, input, d, "cross_entropy", loc);
  DType w = wide(n->dtype);
  double classes = static_cast<double>(n->shape[d]);
  Tensor t = target.to(w);
  if (o.label_smoothing > 0) t = t * (1.0 - o.label_smoothing) + o.label_smoothing / classes;
  if (weight.defined()) t = t * along(weight, d, n->rank());
  Tensor loss = -(t * log_softmax(input.to(w), d)).sum(d);
  if (how == Reduction::Mean) return loss.mean().to(raised(n->dtype));
  return (how == Reduction::Sum ? loss.sum() : loss).to(raised(n->dtype));
}

}  // namespace

Tensor cross_entropy(const Tensor& input, const Tensor& target, const CrossEntropyOptions& o,
                     SourceLoc place) {
  SourceLoc loc = user_loc(place);
  LocScope scope(loc);
  Reduction how = parse_reduction(o.reduction, "cross_entropy", loc);
  check_smoothing(o.label_smoothing, loc);
  if (is_float(node_of(target, "cross_entropy", loc)->dtype))
    return soft_cross_entropy(input, target, o, how, loc);
  CheckScope checked(Check::CrossEntropy);
  int d = class_dim(input, target, "cross_entropy", loc);
  Tensor weight = class_weights(o, input, d, "cross_entropy", loc);
  DType t = input.dtype();
  Tensor x = input.to(wide(t));
  Tensor valid = target != o.ignore_index;
  Tensor label = where(valid, target, 0);
  Tensor top = x.detach().amax(d, true);
  Tensor lse = (log(exp(x - top).sum(d, true)) + top).squeeze(d);
  Tensor picked = gather(x, d, label.unsqueeze(d)).squeeze(d);
  Tensor loss = lse - picked, counts = valid;
  if (weight.defined()) {
    counts = where(valid, weight_of(weight, label), 0.0);
    loss = loss * counts;
  }
  if (o.label_smoothing > 0) {
    // Every class with the same share: (lse - x) averaged, each class by its weight.
    Tensor rest = weight.defined() ? (lse * weight.sum() - (x * along(weight, d, x.dim())).sum(d)) /
                                         static_cast<double>(x.size(d))
                                   : lse - x.mean(d);
    loss = loss * (1.0 - o.label_smoothing) + rest * o.label_smoothing;
  }
  return reduce(where(valid, loss, 0.0), counts, how).to(raised(t));
}

Tensor nll_loss(const Tensor& input, const Tensor& target, const CrossEntropyOptions& o,
                SourceLoc place) {
  SourceLoc loc = user_loc(place);
  LocScope scope(loc);
  Reduction how = parse_reduction(o.reduction, "nll_loss", loc);
  if (o.label_smoothing != 0)
    fail(ErrorKind::Value, "nll_loss", "has no label smoothing", loc,
         "use cross_entropy() on the logits");
  CheckScope checked(Check::NllLoss);
  int d = class_dim(input, target, "nll_loss", loc);
  Tensor weight = class_weights(o, input, d, "nll_loss", loc);
  DType t = input.dtype();
  Tensor valid = target != o.ignore_index;
  Tensor label = where(valid, target, 0);
  Tensor loss = -gather(input.to(wide(t)), d, label.unsqueeze(d)).squeeze(d), counts = valid;
  if (weight.defined()) {
    counts = where(valid, weight_of(weight, label), 0.0);
    loss = loss * counts;
  }
  return reduce(where(valid, loss, 0.0), counts, how).to(raised(t));
}

Tensor mse_loss(const Tensor& input, const Tensor& target, std::string_view reduction,
                SourceLoc place) {
  SourceLoc loc = user_loc(place);
  LocScope scope(loc);
  Reduction how = parse_reduction(reduction, "mse_loss", loc);
  NodeRef x = node_of(input, "mse_loss", loc), y = node_of(target, "mse_loss", loc);
  Dims both;
  if (!broadcast_shapes(x->shape, y->shape, both))
    fail(ErrorKind::Shape, "mse_loss",
         "input and target differ in shape: " + describe(input) + " and " + describe(target), loc);
  DType t = promoted(x, y);
  if (!is_float(t))
    fail(ErrorKind::DType, "mse_loss",
         "needs floating types, not " + describe(input) + " and " + describe(target), loc,
         "convert with .to(float32)");
  Tensor diff = input.to(wide(t)) - target.to(wide(t));
  Tensor sq = diff * diff;
  return (how == Reduction::None ? sq : how == Reduction::Sum ? sq.sum() : sq.mean()).to(raised(t));
}

}  // namespace ingot
