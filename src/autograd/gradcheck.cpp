// gradcheck: the gradient of a weighted sum of all outputs, against central differences in every
// input element. The weights differ from each other, so that errors of different outputs do not
// cancel.
#include <cmath>
#include <sstream>

#include "ingot/autograd.h"
#include "ingot/ops.h"

namespace ingot {
namespace {

// Numbers between 0.5 and 1.5, and between -1.5 and -0.5, in a fixed order that does not depend on
// a generator.
Tensor weights_like(const Tensor& x, uint64_t stream) {
  std::vector<double> w(static_cast<size_t>(x.numel()));
  uint64_t state = 0x9E3779B97F4A7C15ull * (stream + 1);
  for (double& v : w) {
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    double u = static_cast<double>(state >> 11) * 0x1p-53;
    v = (state >> 63 ? 1 : -1) * (0.5 + u);
  }
  return from_data(w.data(), x.shape(), {float64, x.device()});
}

Tensor weighted_sum(const std::vector<Tensor>& outputs) {
  Tensor total = zeros({}, float64);
  for (size_t i = 0; i < outputs.size(); ++i)
    if (is_float(outputs[i].dtype()))
      total = total + (outputs[i].to(float64) * weights_like(outputs[i], i)).sum().cpu();
  return total;
}

Tensor leaf_of(const std::vector<double>& values, const Tensor& like) {
  Tensor t = from_data(values.data(), like.shape(), {float64, like.device()});
  t.requires_grad_();
  return t;
}

std::string place(const Dims& shape, int64_t k) {
  Dims index = Dims::filled(shape.size(), 0);
  for (int d = shape.size() - 1; d >= 0; --d) {
    index[d] = k % shape[d];
    k /= shape[d];
  }
  return to_string(index);
}

struct Worst {
  GradCheck& result;
  double atol, rtol;

  void compare(size_t input, const Dims& shape, int64_t k, double analytic, double numeric) const {
    double error = std::fabs(analytic - numeric) / (atol + rtol * std::fabs(numeric));
    if (std::isnan(error)) error = std::isnan(analytic) && std::isnan(numeric) ? 0 : INFINITY;
    if (error <= result.worst && !result.report.empty()) return;
    result.worst = error;
    result.ok = error <= 1;
    std::ostringstream text;
    text.precision(10);
    text << "input " << input << " " << place(shape, k) << ": analytic " << analytic << ", numeric "
         << numeric << " (" << error << " times the tolerance)";
    result.report = text.str();
  }
};

}  // namespace

GradCheck gradcheck(const GradFunction& fn, const std::vector<Tensor>& inputs, double eps,
                    double atol, double rtol, SourceLoc loc) {
  LocScope scope(user_loc(loc));
  std::vector<Tensor> at = inputs;
  std::vector<size_t> varied;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i].requires_grad()) continue;
    if (inputs[i].dtype() != float64)
      throw Error(ErrorKind::DType, "gradcheck",
                  "input " + std::to_string(i) + " is not float64: differences would be noise",
                  user_loc(loc), "convert it with .to(float64) before requires_grad_()");
    varied.push_back(i);
    at[i] = leaf_of(inputs[i].detach().to_vector<double>(), inputs[i]);
  }
  std::vector<Tensor> leaves;
  leaves.reserve(varied.size());
  for (size_t i : varied) leaves.push_back(at[i]);
  Tensor total = weighted_sum(fn(at));
  std::vector<Tensor> grads(leaves.size());
  if (total.requires_grad()) grads = grad({total}, leaves, {}, false, false, /*allow_unused=*/true);

  GradCheck result;
  Worst worst{result, atol, rtol};
  for (size_t v = 0; v < varied.size(); ++v) {
    size_t i = varied[v];
    std::vector<double> x = leaves[v].detach().to_vector<double>();
    std::vector<double> analytic(x.size(), 0.0);
    if (grads[v].defined()) analytic = grads[v].to_vector<double>();
    for (size_t k = 0; k < x.size(); ++k) {
      double side[2];
      for (int s = 0; s < 2; ++s) {
        std::vector<double> moved = x;
        moved[k] += s ? eps : -eps;
        std::vector<Tensor> there = at;
        there[i] = leaf_of(moved, inputs[i]);
        side[s] = weighted_sum(fn(there)).item();
      }
      worst.compare(i, inputs[i].shape(), static_cast<int64_t>(k), analytic[k],
                    (side[1] - side[0]) / (2 * eps));
    }
  }
  return result;
}

GradCheck gradgradcheck(const GradFunction& fn, const std::vector<Tensor>& inputs, double eps,
                        double atol, double rtol, SourceLoc loc) {
  LocScope scope(user_loc(loc));
  std::vector<Tensor> outputs = fn(inputs), all = inputs;
  std::vector<size_t> used;
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (!outputs[i].requires_grad()) continue;
    used.push_back(i);
    all.push_back(weights_like(outputs[i], i + 100).requires_grad_());
  }
  size_t count = inputs.size();
  GradFunction gradients = [&](const std::vector<Tensor>& x) {
    std::vector<Tensor> in(x.begin(), x.begin() + static_cast<std::ptrdiff_t>(count)), out, wanted;
    std::vector<Tensor> weights(x.begin() + static_cast<std::ptrdiff_t>(count), x.end()),
        values = fn(in);
    for (size_t i : used) out.push_back(values[i]);
    for (const Tensor& t : in)
      if (t.requires_grad()) wanted.push_back(t);
    std::vector<Tensor> result;
    for (Tensor& g : grad(out, wanted, weights, true, true, true))
      if (g.defined()) result.push_back(g);
    return result;
  };
  return gradcheck(gradients, all, eps, atol, rtol, loc);
}

}  // namespace ingot
