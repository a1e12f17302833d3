// Metrics: sums that stay on the device and are updated in the plan of the step they belong to.
#include <cmath>
#include <memory>

#include "ingot/autograd.h"
#include "ingot/fit.h"
#include "ops/common.h"

namespace ingot {

Metric::~Metric() = default;

namespace metrics {
namespace {

// output [N, C, ...] as [rows, C], target [N, ...] as [rows].
struct Rows {
  Tensor output, target;
};
Rows rows(const Tensor& output, const Tensor& target, const char* op, const SourceLoc& loc) {
  Dims want = output.shape();
  if (want.size() < 2)
    fail(ErrorKind::Shape, op, "expects an output [N, classes, ...], not " + describe(output), loc);
  want.erase(1);
  if (!(want == target.shape()))
    fail(ErrorKind::Shape, op,
         "the target " + describe(target) + " does not fit the output " + describe(output), loc);
  Tensor last = output.detach();
  if (output.dim() > 2) last = last.flatten(2).transpose(1, 2).flatten(0, 1);
  return {last, target.detach().reshape({-1})};
}

// A sum over rows and how many there were.
class Share : public Metric {
 public:
  using Metric::Metric;
  void reset() override { sum_ = count_ = Tensor(); }
  double value(SourceLoc) const override {
    return sum_.defined() ? sum_.item() / count_.item() : 0;
  }

 protected:
  void add(const Tensor& sum, const Tensor& count) {
    if (!sum_.defined()) {
      sum_ = zeros({}, {float64, sum.device()}).eval_();
      count_ = zeros({}, {float64, sum.device()}).eval_();
    }
    sum_.add_(sum.to(float64));
    count_.add_(count.to(float64));
  }
  Tensor sum_, count_;
};

class TopK : public Share {
 public:
  TopK(std::string name, int64_t k) : Share(std::move(name)), k_(k) {}
  void update(const Tensor& output, const Tensor& target, SourceLoc where) override {
    SourceLoc loc = user_loc(where);
    LocScope scope(loc);
    NoGrad guard;
    auto [o, t] = rows(output, target, "accuracy", loc);
    Tensor right;
    if (k_ == 1) {
      right = o.argmax(1) == t;
    } else {  // fewer than k are larger, no sorting is needed
      CheckScope checked(Check::Accuracy);
      Tensor own = o.gather(1, t.unsqueeze(1));
      right = (o > own).to(int64).sum(1) < k_;
    }
    add(right.to(float64).sum(), full({}, t.size(0), {float64, o.device()}));
  }

 private:
  int64_t k_;
};

class Perplexity : public Share {
 public:
  Perplexity() : Share("perplexity") {}
  void update(const Tensor& output, const Tensor& target, SourceLoc where) override {
    SourceLoc loc = user_loc(where);
    LocScope scope(loc);
    NoGrad guard;
    auto [o, t] = rows(output, target, "perplexity", loc);
    add(cross_entropy(o.to(float32), t, {.reduction = "sum"}), (t != -100).to(float64).sum());
  }
  double value(SourceLoc loc) const override { return std::exp(Share::value(loc)); }
};

}  // namespace

std::shared_ptr<Metric> accuracy() { return std::make_shared<TopK>("accuracy", 1); }
std::shared_ptr<Metric> top_k(int64_t k, SourceLoc loc) {
  if (k < 1)
    fail(ErrorKind::Value, "top_k", "k must be at least 1, not " + std::to_string(k),
         user_loc(loc));
  return std::make_shared<TopK>("top-" + std::to_string(k), k);
}
std::shared_ptr<Metric> perplexity() { return std::make_shared<Perplexity>(); }

Confusion::Confusion(int64_t num_classes, SourceLoc loc)
    : Metric("confusion"), classes_(num_classes) {
  if (num_classes < 1)
    fail(ErrorKind::Value, "confusion", "num_classes must be at least 1", user_loc(loc));
}
std::shared_ptr<Confusion> confusion(int64_t num_classes, SourceLoc loc) {
  return std::make_shared<Confusion>(num_classes, user_loc(loc));
}

void Confusion::reset() { counts_ = Tensor(); }

void Confusion::update(const Tensor& output, const Tensor& target, SourceLoc where) {
  SourceLoc loc = user_loc(where);
  LocScope scope(loc);
  NoGrad guard;
  auto [o, t] = rows(output, target, "confusion", loc);
  if (o.size(1) != classes_)
    fail(ErrorKind::Shape, "confusion",
         "was made for " + std::to_string(classes_) + " classes, not for " + describe(output), loc);
  if (!counts_.defined()) counts_ = zeros({classes_, classes_}, {int64, o.device()}).eval_();
  Tensor all = arange(classes_, o.device());
  Tensor is = (t.unsqueeze(1) == all).to(float32),
         taken = (o.argmax(1).unsqueeze(1) == all).to(float32);
  counts_.add_(matmul(is.t(), taken).to(int64));  // exact: a batch has fewer than 2^24 rows
}

Tensor Confusion::matrix() const {
  return counts_.defined() ? counts_ : zeros({classes_, classes_}, int64);
}

double Confusion::value(SourceLoc) const {
  const std::vector<double> m = matrix().to_vector<double>();
  double all = 0, right = 0;
  for (size_t i = 0; i < m.size(); ++i) {
    all += m[i];
    if (i % static_cast<size_t>(classes_ + 1) == 0) right += m[i];
  }
  return all > 0 ? right / all : 0;
}

}  // namespace metrics
}  // namespace ingot
