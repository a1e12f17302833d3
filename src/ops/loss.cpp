// Losses. Cross entropy is logsumexp minus the logit of the label, so that no [N, C] value is kept
// but the input.
#include <limits>

#include "ops/autocast.h"
#include "ops/composed.h"
#include "ops/reduction.h"

namespace ingot {
namespace {

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

// The classes' weights, which may be undefined.
void check_class_weights(const CrossEntropyOptions& o, const Tensor& input, int d, const char* op,
                         const SourceLoc& loc) {
  if (!o.weight.defined()) return;
  NodeRef w = node_of(o.weight, op, loc), x = node_of(input, op, loc);
  if (w->rank() != 1 || w->shape[0] != x->shape[d] || !is_float(w->dtype))
    fail(is_float(w->dtype) ? ErrorKind::Shape : ErrorKind::DType, op,
         "the weight must be floating, one number for each of the " + std::to_string(x->shape[d]) +
             " classes, not " + describe(o.weight),
         loc);
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

// The parameters of a cross entropy's composite.
struct Given {
  Reduction how;
  int64_t ignored;
  double smoothing;
  explicit Given(const CompositeArgs& a)
      : how(static_cast<Reduction>(a.i(0))), ignored(a.i(1)), smoothing(a.f(2)) {}
};
std::vector<CompositeParam> params_of(const CrossEntropyOptions& o, Reduction how) {
  return {static_cast<int>(how), o.ignore_index, o.label_smoothing};
}
Dims shape_of(const Tensor& input, int d, Reduction how) {
  if (how != Reduction::None) return {};
  Dims shape = input.shape();
  shape.erase(d);
  return shape;
}
int class_dim(const Tensor& input) { return input.dim() >= 2 ? 1 : 0; }
Tensor wide_weight(const CompositeArgs& a) {
  return a.in.size() > 2 ? a[2].to(compute_type(a[0].dtype())) : Tensor();
}

// Targets that are probabilities: -(target * weight * log_softmax(input)) summed over the classes.
Tensor soft_cross_entropy_body(const CompositeArgs& a) {
  const Given given(a);
  const int d = class_dim(a[0]);
  const Tensor weight = wide_weight(a);
  const DType w = compute_type(a[0].dtype());
  Tensor t = a[1].to(w);
  if (given.smoothing > 0)
    t = t * (1.0 - given.smoothing) + given.smoothing / static_cast<double>(a[0].size(d));
  if (weight.defined()) t = t * along(weight, d, a[0].dim());
  return reduced(-(t * log_softmax(a[0].to(w), d)).sum(d), given.how).to(a.result);
}

Tensor soft_cross_entropy(const Tensor& input, const Tensor& target, const CrossEntropyOptions& o,
                          Reduction how, const SourceLoc& loc) {
  NodeRef n = node_of(input, "cross_entropy", loc), y = node_of(target, "cross_entropy", loc);
  if (!(n->shape == y->shape) || n->rank() == 0 || !is_float(n->dtype))
    fail(is_float(n->dtype) ? ErrorKind::Shape : ErrorKind::DType, "cross_entropy",
         "probabilities as the target need the input's shape and floating types: " +
             describe(input) + " and " + describe(target),
         loc, "class numbers must be int64 or int32");
  const int d = class_dim(input);
  check_class_weights(o, input, d, "cross_entropy", loc);
  return composite("cross_entropy", params_of(o, how), {input, target, o.weight},
                   shape_of(input, d, how), raised(n->dtype), soft_cross_entropy_body, loc);
}

// What each target counts, 0 where it is ignored.
struct Labels {
  Tensor valid, label, counts;
  Labels(const Tensor& target, int64_t ignored, const Tensor& weight)
      : valid(target != ignored), label(where(valid, target, 0)), counts(valid) {
    if (weight.defined()) counts = where(valid, weight_of(weight, label), 0.0);
  }
};

Tensor cross_entropy_body(const CompositeArgs& a) {
  CheckScope checked(Check::CrossEntropy);
  const Given given(a);
  const int d = class_dim(a[0]);
  const Tensor weight = wide_weight(a), x = a[0].to(compute_type(a[0].dtype()));
  const Labels y(a[1], given.ignored, weight);
  Tensor top = x.detach().amax(d, true);
  Tensor lse = (log(exp(x - top).sum(d, true)) + top).squeeze(d);
  Tensor loss = lse - gather(x, d, y.label.unsqueeze(d)).squeeze(d);
  if (weight.defined()) loss = loss * y.counts;
  if (given.smoothing > 0) {
    // Every class with the same share: (lse - x) averaged, each class by its weight.
    Tensor rest = weight.defined() ? (lse * weight.sum() - (x * along(weight, d, x.dim())).sum(d)) /
                                         static_cast<double>(x.size(d))
                                   : lse - x.mean(d);
    loss = loss * (1.0 - given.smoothing) + rest * given.smoothing;
  }
  return reduce(where(y.valid, loss, 0.0), y.counts, given.how).to(a.result);
}

Tensor nll_loss_body(const CompositeArgs& a) {
  CheckScope checked(Check::NllLoss);
  const Given given(a);
  const int d = class_dim(a[0]);
  const Tensor weight = wide_weight(a);
  const Labels y(a[1], given.ignored, weight);
  Tensor loss = -gather(a[0].to(compute_type(a[0].dtype())), d, y.label.unsqueeze(d)).squeeze(d);
  if (weight.defined()) loss = loss * y.counts;
  return reduce(where(y.valid, loss, 0.0), y.counts, given.how).to(a.result);
}

Tensor label_loss(const char* op, Composite::Body body, const Tensor& input, const Tensor& target,
                  const CrossEntropyOptions& o, Reduction how, const SourceLoc& loc) {
  const int d = class_dim(input, target, op, loc);
  check_class_weights(o, input, d, op, loc);
  return composite(op, params_of(o, how), {input, target, o.weight}, shape_of(input, d, how),
                   raised(input.dtype()), body, loc);
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
  return label_loss("cross_entropy", cross_entropy_body, input, target, o, how, loc);
}

Tensor nll_loss(const Tensor& input, const Tensor& target, const CrossEntropyOptions& o,
                SourceLoc place) {
  SourceLoc loc = user_loc(place);
  LocScope scope(loc);
  Reduction how = parse_reduction(o.reduction, "nll_loss", loc);
  if (o.label_smoothing != 0)
    fail(ErrorKind::Value, "nll_loss", "has no label smoothing", loc,
         "use cross_entropy() on the logits");
  return label_loss("nll_loss", nll_loss_body, input, target, o, how, loc);
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
  return composite(
      "mse_loss", {static_cast<int>(how), static_cast<int>(t)}, {input, target},
      how == Reduction::None ? both : Dims{}, raised(t),
      [](const CompositeArgs& a) {
        const DType wide = compute_type(static_cast<DType>(a.i(1)));
        Tensor diff = a[0].to(wide) - a[1].to(wide);
        return reduced(diff * diff, static_cast<Reduction>(a.i(0))).to(a.result);
      },
      loc);
}

}  // namespace ingot
