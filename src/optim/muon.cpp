// Muon: the momentum of a matrix, made orthogonal by a few steps of an odd polynomial whose
// coefficients pull all singular values near 1.
#include <cmath>

#include "ingot/ops.h"
#include "optim/update.h"

namespace ingot::optim {
namespace {

Tensor orthogonal(const Tensor& g, const MuonOptions& o) {
  const bool tall = g.size(0) > g.size(1);
  Tensor x = tall ? g.t() : g;
  x = x / clamp_min(norm(x), o.eps);
  for (int i = 0; i < o.ns_steps; ++i) {
    Tensor gram = matmul(x, x.t());
    x = x * o.ns_coefficients[0] +
        matmul(gram * o.ns_coefficients[1] + matmul(gram, gram) * o.ns_coefficients[2], x);
  }
  return tall ? x.t() : x;
}

double rate_factor(const MuonOptions& o, const Dims& shape) {
  const double rows = static_cast<double>(shape[0]), columns = static_cast<double>(shape[1]);
  return o.adjust_lr_fn == "original" ? std::sqrt(std::max(1.0, rows / columns))
                                      : 0.2 * std::sqrt(std::max(rows, columns));
}

}  // namespace

Muon::Muon(const std::vector<ParamGroup<MuonOptions>>& groups, SourceLoc loc) {
  for (const auto& [params, o] : groups) {
    refuse("Muon", common_mistake(o), loc);
    refuse("Muon",
           o.ns_steps >= 1 && o.ns_steps < 100 ? nullptr : "ns_steps must be between 1 and 99",
           loc);
    refuse("Muon",
           o.adjust_lr_fn == "original" || o.adjust_lr_fn == "match_rms_adamw"
               ? nullptr
               : "adjust_lr_fn must be \"original\" or \"match_rms_adamw\"",
           loc);
    for (const Tensor& p : params)
      if (p.defined() && p.dim() != 2)
        throw Error(ErrorKind::Shape, "Muon",
                    "takes matrices only, not " + describe(p.cell()->current()), user_loc(loc),
                    "give the other parameters to a separate AdamW");
    add_group(params,
              {.lr = o.lr, .states = 1, .momentum = o.momentum, .master_weights = o.master_weights},
              o, loc);
  }
}

void Muon::update(Step& step) const {
  const auto& o = step.options<MuonOptions>();
  const Tensor decay = 1.0 - step.lr * o.weight_decay;
  for (Parameter& p : step.parameters) {
    const Tensor& g = p.gradient;
    const Tensor average = p.state[0] + step.momentum.rest_times(g - p.state[0]);
    const Tensor change =
        orthogonal(o.nesterov ? g + step.momentum.times(average - g) : average, o);
    p.weight =
        p.weight * p.scalar(decay) - change * p.scalar(step.lr * rate_factor(o, p.weight.shape()));
    p.state[0] = average;
  }
}

}  // namespace ingot::optim
