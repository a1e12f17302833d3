#include "support/op_check.h"

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

double Numbers::between(double lo, double hi) {
  return lo + (hi - lo) * (static_cast<double>(bits() >> 11) * 0x1p-53);
}

int64_t Numbers::integer(int64_t lo, int64_t hi) {
  return lo + static_cast<int64_t>(bits() % static_cast<uint64_t>(hi - lo));
}

static NodeRef node(const Tensor& t) { return t.cell()->current(); }

static uint16_t half_bits(double x) {  // normal numbers, zero and subnormals; no infinities
  double r = std::fabs(oracle::round_to(DType::Float16, x));
  int e;
  std::frexp(r, &e);
  uint16_t sign = std::signbit(x) ? 0x8000 : 0;
  if (r < 0x1p-14) return static_cast<uint16_t>(sign | static_cast<uint16_t>(std::ldexp(r, 24)));
  return static_cast<uint16_t>(sign | ((e - 1 + 15) << 10) |
                               (static_cast<uint16_t>(std::ldexp(r, 11 - e)) & 1023));
}

static uint16_t bfloat_bits(double x) {
  float f = static_cast<float>(oracle::round_to(DType::BFloat16, x));
  uint32_t u;
  std::memcpy(&u, &f, 4);
  return static_cast<uint16_t>(u >> 16);
}

// Host data of any type, without running anything.
static Tensor from_numbers(const std::vector<double>& v, DType dtype, const Dims& shape,
                           const Device& device) {
  std::vector<char> bytes(v.size() * size_of(dtype) + 1);
  auto write = [&](size_t k, auto x) { std::memcpy(bytes.data() + k * sizeof x, &x, sizeof x); };
  for (size_t k = 0; k < v.size(); ++k) switch (dtype) {
      case DType::Float64:
        write(k, v[k]);
        break;
      case DType::Float32:
        write(k, static_cast<float>(v[k]));
        break;
      case DType::Float16:
        write(k, half_bits(v[k]));
        break;
      case DType::BFloat16:
        write(k, bfloat_bits(v[k]));
        break;
      case DType::Int64:
        write(k, static_cast<int64_t>(v[k]));
        break;
      case DType::Int32:
        write(k, static_cast<int32_t>(v[k]));
        break;
      case DType::Int16:
        write(k, static_cast<int16_t>(v[k]));
        break;
      case DType::Int8:
        write(k, static_cast<int8_t>(v[k]));
        break;
      case DType::UInt8:
        write(k, static_cast<uint8_t>(v[k]));
        break;
      case DType::Bool:
        write(k, static_cast<uint8_t>(v[k] != 0));
        break;
    }
  return from_data(bytes.data(), dtype, shape, device);
}

Tensor random_tensor(const Dims& shape, DType dtype, double lo, double hi, Numbers& numbers,
                     const Device& device) {
  std::vector<double> v(static_cast<size_t>(shape.numel()));
  for (double& x : v) {
    if (is_float(dtype))
      x = numbers.between(lo, hi);
    else if (dtype == DType::Bool)
      x = static_cast<double>(numbers.integer(0, 2));
    else
      x = static_cast<double>(numbers.integer(static_cast<int64_t>(lo), static_cast<int64_t>(hi)));
  }
  return from_numbers(v, dtype, shape, device);
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
    case DType::Float64:
      return {1e-10, 1e-11};
    case DType::Float32:
      return {2e-5, 2e-6};
    case DType::Float16:
      return {2e-3, 2e-3};
    case DType::BFloat16:
      return {1.6e-2, 1e-2};
    default:
      return {0, 0};
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
    text << "is " << name_of(got.dtype) << to_string(got.shape) << ", expected "
         << name_of(want.dtype) << to_string(want.shape);
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
  text << bad << " of " << want.numel() << " elements of " << name_of(want.dtype)
       << to_string(want.shape) << " differ; element " << first << " is " << got.at(first)
       << ", expected " << want.at(first);
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
  evaluate.set(node(leaf).get(), value);
  return evaluate(node(sum)).f[0];
}

std::string check_differences(const Tensor& sum, const std::vector<Tensor>& leaves,
                              const std::vector<Tensor>& grads, double eps, double rtol,
                              double atol) {
  oracle::Oracle evaluate(oracle::Precision::Exact);
  for (size_t i = 0; i < leaves.size(); ++i) {
    Value x = evaluate(node(leaves[i]));
    Value analytic(x.dtype, x.shape);
    if (grads[i].defined()) analytic = evaluate(node(grads[i]));
    if (!(analytic.shape == x.shape))
      return "gradient " + std::to_string(i) + " has shape " + to_string(analytic.shape);
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
