// Losses. Cross entropy is logsumexp minus the logit of the label, so that no [N, C] value is kept but the input.
#include "ops/autocast.h"
#include "ops/common.h"

namespace ingot {
namespace {

enum class Reduction { Mean, Sum, None };

Reduction parse(std::string_view word, const char* op, const SourceLoc& loc) {
  if (word == "mean") return Reduction::Mean;
  if (word == "sum") return Reduction::Sum;
  if (word == "none") return Reduction::None;
  fail(ErrorKind::Value, op, "reduction is \"" + std::string(word) + "\"", loc, "use \"mean\", \"sum\" or \"none\"");
}

DType wide(DType t) { return is_half(t) ? DType::Float32 : t; }

// Input [N, C, ...] or [C]; target the same without C. Returns the dim of the classes.
int class_dim(const Tensor& input, const Tensor& target, const char* op, const SourceLoc& loc) {
  Node *x = node_of(input, op, loc), *y = node_of(target, op, loc);
  if (!is_float(x->dtype))
    fail(ErrorKind::DType, op, "the input must be floating, not " + describe(input), loc, "convert with .to(float32)");
  if (y->dtype != DType::Int64 && y->dtype != DType::Int32)
    fail(ErrorKind::DType, op, "the target holds class numbers, int64 or int32, not " + describe(target), loc,
         "convert with .to(int64); probabilities are not taken: write -(p * log_softmax(x, 1)).sum(1).mean()");
  int d = x->rank() >= 2 ? 1 : 0;
  Dims want = x->shape;
  if (x->rank() >= 1) want.erase(d);
  if (x->rank() == 0 || !(want == y->shape))
    fail(ErrorKind::Shape, op,
         "the target must have the input's shape without the class dim: " + describe(input) + " against target " +
             describe(target),
         loc,
         y->rank() > 0 && y->rank() == x->rank() && y->shape.back() == 1 ? "drop the last dim: target.squeeze(-1)"
         : x->rank() == 3 && y->rank() == 2 && x->shape[0] == y->shape[0] && x->shape[1] == y->shape[1]
             ? "flatten both: cross_entropy(x.flatten(0, 1), target.flatten())"
             : "the target must be " + to_string(want));
  return d;
}

Tensor reduce(const Tensor& loss, const Tensor& valid, Reduction how) {
  if (how == Reduction::None) return loss;
  if (how == Reduction::Sum) return loss.sum();
  // Divided before the sum: the rows then depend on the count alone, and their gradient can be computed with them.
  return (loss / valid.to(loss.dtype()).sum()).sum();
}

void check_smoothing(double s, const SourceLoc& loc) {
  if (!(s >= 0 && s <= 1))
    fail(ErrorKind::Value, "cross_entropy", "label_smoothing must be between 0 and 1, not " + text_of(s), loc);
}

}  // namespace

Tensor cross_entropy(const Tensor& input, const Tensor& target, const CrossEntropyOptions& o, SourceLoc place) {
  SourceLoc loc = user_loc(place);
  LocScope scope(loc);
  Reduction how = parse(o.reduction, "cross_entropy", loc);
  check_smoothing(o.label_smoothing, loc);
  int d = class_dim(input, target, "cross_entropy", loc);
  DType t = input.dtype();
  Tensor x = input.to(wide(t));
  Tensor valid = target != o.ignore_index;
  Tensor label = where(valid, target, 0);
  Tensor top = x.detach().amax(d, true);
  Tensor lse = (log(exp(x - top).sum(d, true)) + top).squeeze(d);
  Tensor picked = gather(x, d, label.unsqueeze(d)).squeeze(d);
  Tensor loss = lse - picked;
  if (o.label_smoothing > 0)
    loss = loss * (1.0 - o.label_smoothing) + (lse - x.mean(d)) * o.label_smoothing;
  return reduce(where(valid, loss, 0.0), valid, how).to(raised(t));
}

Tensor nll_loss(const Tensor& input, const Tensor& target, const CrossEntropyOptions& o, SourceLoc place) {
  SourceLoc loc = user_loc(place);
  LocScope scope(loc);
  Reduction how = parse(o.reduction, "nll_loss", loc);
  if (o.label_smoothing != 0)
    fail(ErrorKind::Value, "nll_loss", "has no label smoothing", loc, "use cross_entropy() on the logits");
  int d = class_dim(input, target, "nll_loss", loc);
  DType t = input.dtype();
  Tensor valid = target != o.ignore_index;
  Tensor label = where(valid, target, 0);
  Tensor picked = gather(input.to(wide(t)), d, label.unsqueeze(d)).squeeze(d);
  return reduce(where(valid, -picked, 0.0), valid, how).to(raised(t));
}

Tensor mse_loss(const Tensor& input, const Tensor& target, std::string_view reduction, SourceLoc place) {
  SourceLoc loc = user_loc(place);
  LocScope scope(loc);
  Reduction how = parse(reduction, "mse_loss", loc);
  Node *x = node_of(input, "mse_loss", loc), *y = node_of(target, "mse_loss", loc);
  Dims both;
  if (!broadcast_shapes(x->shape, y->shape, both))
    fail(ErrorKind::Shape, "mse_loss", "input and target differ in shape: " + describe(input) + " and " + describe(target),
         loc);
  DType t = promoted(x, y);
  if (!is_float(t))
    fail(ErrorKind::DType, "mse_loss", "needs floating types, not " + describe(input) + " and " + describe(target), loc,
         "convert with .to(float32)");
  Tensor diff = input.to(wide(t)) - target.to(wide(t));
  Tensor sq = diff * diff;
  return (how == Reduction::None ? sq : how == Reduction::Sum ? sq.sum() : sq.mean()).to(raised(t));
}

}  // namespace ingot
