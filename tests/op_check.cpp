#include "op_check.h"

#include <cmath>
#include <cstring>
#include <sstream>

#include "graph/handle.h"

namespace ingot::check {

using oracle::Value;

uint64_t Numbers::bits() {  // splitmix64
  uint64_t z = (state_ += 0x9E3779B97F4A7C15ull);
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
  return z ^ (z >> 31);
}

double Numbers::between(double lo, double hi) { return lo + (hi - lo) * (static_cast<double>(bits() >> 11) * 0x1p-53); }

int64_t Numbers::integer(int64_t lo, int64_t hi) { return lo + static_cast<int64_t>(bits() % static_cast<uint64_t>(hi - lo)); }

static Node* node(const Tensor& t) { return t.cell()->node.get(); }

Tensor random_tensor(const Dims& shape, DType dtype, double lo, double hi, Numbers& numbers, const Device& device) {
  size_t n = static_cast<size_t>(shape.numel());
  if (dtype == DType::Bool) {
    std::vector<uint8_t> v(n);
    for (uint8_t& x : v) x = numbers.bits() & 1;
    return from_data(v.data(), DType::Bool, shape, device);
  }
  if (!is_float(dtype)) {
    std::vector<int64_t> v(n);
    for (int64_t& x : v) x = numbers.integer(static_cast<int64_t>(lo), static_cast<int64_t>(hi));
    Tensor t = from_data(v.data(), DType::Int64, shape, device);
    return dtype == DType::Int64 ? t : t.to(dtype).eval_();
  }
  std::vector<double> v(n);
  for (double& x : v) x = numbers.between(lo, hi);
  Tensor t = from_data(v.data(), DType::Float64, shape, device);
  return dtype == DType::Float64 ? t : t.to(dtype).eval_();
}

Value expected(const Tensor& t, oracle::Precision p) {
  oracle::Oracle evaluate(p);
  return evaluate(node(t));
}

Value computed(const Tensor& t) {
  std::vector<char> bytes(node(t)->bytes());
  t.copy_to(bytes.data());
  return oracle::read_memory(t.dtype(), t.shape(), bytes.data());
}

Tolerance tolerance(DType t) {
  switch (t) {
    case DType::Float64: return {1e-10, 1e-11};
    case DType::Float32: return {2e-5, 2e-6};
    case DType::Float16: return {2e-3, 2e-3};
    case DType::BFloat16: return {1.6e-2, 1e-2};
    default: return {0, 0};
  }
}

static bool close(double got, double want, Tolerance tol) {
  if (std::isnan(want)) return std::isnan(got);
  if (got == want) return true;
  return std::fabs(got - want) <= tol.abs + tol.rel * std::fabs(want);
}

std::string difference(const Value& got, const Value& want, Tolerance tol) {
  std::ostringstream text;
  text.precision(12);
  if (got.dtype != want.dtype || !(got.shape == want.shape)) {
    text << "is " << name_of(got.dtype) << to_string(got.shape) << ", expected " << name_of(want.dtype) << to_string(want.shape);
    return text.str();
  }
  int64_t bad = 0, first = -1;
  for (int64_t k = 0; k < want.numel(); ++k) {
    bool same = is_float(want.dtype) ? close(got.f[k], want.f[k], tol) : got.i[k] == want.i[k];
    if (same) continue;
    ++bad;
    if (first < 0) first = k;
  }
  if (!bad) return "";
  text << bad << " of " << want.numel() << " elements of " << name_of(want.dtype) << to_string(want.shape) << " differ; element "
       << first << " is " << got.at(first) << ", expected " << want.at(first);
  return text.str();
}

Tensor weighted_sum(const std::vector<Tensor>& outputs) {
  Tensor total;
  Numbers numbers(77);
  for (const Tensor& t : outputs) {
    if (!is_float(t.dtype())) continue;
    Tensor w = random_tensor(t.shape(), DType::Float64, 0.5, 1.5, numbers, t.device());
    Tensor part = (t.to(float64) * w).sum();
    total = total.defined() ? total + part.to(total.device()) : part;
  }
  return total.defined() ? total : zeros({}, float64);
}

static double sum_at(const Tensor& sum, const Tensor& leaf, const Value& value) {
  oracle::Oracle evaluate(oracle::Precision::Exact);
  evaluate.set(node(leaf), value);
  return evaluate(node(sum)).f[0];
}

std::string check_differences(const Tensor& sum, const std::vector<Tensor>& leaves, const std::vector<Tensor>& grads, double eps,
                              double rtol, double atol) {
  oracle::Oracle evaluate(oracle::Precision::Exact);
  for (size_t i = 0; i < leaves.size(); ++i) {
    Value x = evaluate(node(leaves[i]));
    Value analytic(x.dtype, x.shape);
    if (grads[i].defined()) analytic = evaluate(node(grads[i]));
    if (!(analytic.shape == x.shape)) return "gradient " + std::to_string(i) + " has shape " + to_string(analytic.shape);
    Value numeric(x.dtype, x.shape);
    for (int64_t k = 0; k < x.numel(); ++k) {
      Value lo = x, hi = x;
      lo.f[k] -= eps;
      hi.f[k] += eps;
      numeric.f[k] = (sum_at(sum, leaves[i], hi) - sum_at(sum, leaves[i], lo)) / (2 * eps);
    }
    std::string wrong = difference(analytic, numeric, {rtol, atol});
    if (!wrong.empty()) return "gradient " + std::to_string(i) + " " + wrong + " by differences";
  }
  return "";
}

}  // namespace ingot::check
