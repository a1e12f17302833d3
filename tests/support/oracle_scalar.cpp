// The oracle's arithmetic on single elements: rounding to each type, and every row of the
// elementwise table.
#include <cmath>
#include <cstring>
#include <limits>
#include <stdexcept>

#include "support/oracle.h"

namespace ingot::oracle {

// Binary format with `bits` bits of fraction and smallest exponent `low` (of the smallest
// subnormal).
static double round_binary(double x, int bits, int low, double largest) {
  if (x == 0 || !std::isfinite(x)) return x;
  int e;
  std::frexp(x, &e);
  int quantum = std::max(e - 1 - bits, low);
  double r = std::ldexp(std::nearbyint(std::ldexp(x, -quantum)), quantum);
  return std::fabs(r) > largest ? std::copysign(std::numeric_limits<double>::infinity(), x) : r;
}

double round_to(DType t, double x) {
  switch (t) {
    case DType::Float32:
      return static_cast<double>(static_cast<float>(x));
    case DType::Float16:
      return round_binary(x, 10, -24, 65504.0);
    case DType::BFloat16:
      return round_binary(x, 7, -133, std::ldexp(255.0, 120));
    default:
      return x;
  }
}

int64_t wrap_to(DType t, int64_t x) {
  switch (t) {
    case DType::Int32:
      return static_cast<int32_t>(x);
    case DType::Int16:
      return static_cast<int16_t>(x);
    case DType::Int8:
      return static_cast<int8_t>(x);
    case DType::UInt8:
      return static_cast<uint8_t>(x);
    case DType::Bool:
      return x != 0;
    default:
      return x;
  }
}

static double floor_remainder(double a, double b) {
  double m = std::fmod(a, b);
  return m != 0 && (m < 0) != (b < 0) ? m + b : m;
}

static double floor_quotient(double a, double b) {
  if (b == 0) return a / b;
  double m = std::fmod(a, b), q = (a - m) / b;
  if (m != 0 && (m < 0) != (b < 0)) q -= 1;
  if (q == 0) return std::copysign(0.0, a / b);
  double f = std::floor(q);
  return q - f > 0.5 ? f + 1 : f;
}

// The inverse of erf by bisection, which needs nothing but erf itself; the tail by erfc.
static double inverse_erf(double a) {
  if (!(std::fabs(a) < 1))
    return std::fabs(a) == 1 ? a * std::numeric_limits<double>::infinity() : std::nan("");
  double lo = 0, hi = 6, m = std::fabs(a);
  for (int k = 0; k < 80; ++k) {
    double y = (lo + hi) / 2;
    bool below = m > 0.5 ? std::erfc(y) > 1 - m : std::erf(y) < m;
    (below ? lo : hi) = y;
  }
  return std::copysign((lo + hi) / 2, a);
}

// The series of polygamma summed to 2000 terms, the rest as an integral.
static double slow_polygamma(double n, double x) {
  const int terms = 2000;
  long double s = 0, end = x + terms, sign = std::fmod(n, 2) == 0 ? -1 : 1;
  if (n == 0) {
    for (int k = terms - 1; k >= 0; --k) s -= 1 / (static_cast<long double>(x) + k);
    return static_cast<double>(s + std::log(end) - 1 / (2 * end) - 1 / (12 * end * end));
  }
  for (int k = terms - 1; k >= 0; --k)
    s += std::pow(static_cast<long double>(x) + k, -static_cast<long double>(n) - 1);
  s += std::pow(end, -static_cast<long double>(n)) / n +
       std::pow(end, -static_cast<long double>(n) - 1) / 2 +
       (n + 1) * std::pow(end, -static_cast<long double>(n) - 2) / 12;
  return static_cast<double>(sign * s * std::tgamma(static_cast<long double>(n) + 1));
}

double float_element(Op op, double a, double b) {
  switch (op) {
    case Op::Neg:
      return -a;
    case Op::Abs:
      return std::fabs(a);
    case Op::Sign:
      return (a > 0) - (a < 0);
    case Op::Exp:
      return std::exp(a);
    case Op::Exp2:
      return std::exp2(a);
    case Op::Expm1:
      return std::expm1(a);
    case Op::Log:
      return std::log(a);
    case Op::Log2:
      return std::log2(a);
    case Op::Log10:
      return std::log10(a);
    case Op::Log1p:
      return std::log1p(a);
    case Op::Sqrt:
      return std::sqrt(a);
    case Op::Rsqrt:
      return 1 / std::sqrt(a);
    case Op::Reciprocal:
      return 1 / a;
    case Op::Sin:
      return std::sin(a);
    case Op::Cos:
      return std::cos(a);
    case Op::Tan:
      return std::tan(a);
    case Op::Asin:
      return std::asin(a);
    case Op::Acos:
      return std::acos(a);
    case Op::Atan:
      return std::atan(a);
    case Op::Sinh:
      return std::sinh(a);
    case Op::Cosh:
      return std::cosh(a);
    case Op::Tanh:
      return std::tanh(a);
    case Op::Asinh:
      return std::asinh(a);
    case Op::Acosh:
      return std::acosh(a);
    case Op::Atanh:
      return std::atanh(a);
    case Op::Erf:
      return std::erf(a);
    case Op::Erfc:
      return std::erfc(a);
    case Op::Erfinv:
      return inverse_erf(a);
    case Op::Lgamma:
      return std::lgamma(a);
    case Op::Sinc:
      return a == 0 ? 1 : std::sin(3.141592653589793 * a) / (3.141592653589793 * a);
    case Op::Sigmoid:
      return 1 / (1 + std::exp(-a));
    case Op::Relu:
      return a > 0 || std::isnan(a) ? a : 0;
    case Op::Floor:
      return std::floor(a);
    case Op::Ceil:
      return std::ceil(a);
    case Op::Round:
      return std::nearbyint(a);
    case Op::Trunc:
      return std::trunc(a);
    case Op::Add:
      return a + b;
    case Op::Sub:
      return a - b;
    case Op::Mul:
      return a * b;
    case Op::Div:
      return a / b;
    case Op::Pow:
      return std::pow(a, b);
    case Op::Maximum:
      return a > b || std::isnan(a) ? a : b;
    case Op::Minimum:
      return a < b || std::isnan(a) ? a : b;
    case Op::Atan2:
      return std::atan2(a, b);
    case Op::Hypot:
      return std::hypot(a, b);
    case Op::Copysign:
      return std::copysign(a, b);
    case Op::Polygamma:
      return slow_polygamma(a, b);
    case Op::Fmod:
      return std::fmod(a, b);
    case Op::Remainder:
      return floor_remainder(a, b);
    case Op::FloorDiv:
      return floor_quotient(a, b);
    default:
      throw std::runtime_error(std::string("oracle: no floating ") + info(op).name);
  }
}

static int64_t int_power(int64_t a, int64_t b) {
  if (b < 0) return a == 1 ? 1 : a == -1 ? (b % 2 ? -1 : 1) : 0;
  uint64_t r = 1, x = static_cast<uint64_t>(a);
  for (; b; b >>= 1, x *= x)
    if (b & 1) r *= x;
  return static_cast<int64_t>(r);
}

static int64_t shifted(Op op, DType t, int64_t a, int64_t b) {
  int64_t bits = static_cast<int64_t>(size_of(t)) * 8;
  if (op == Op::Shl)
    return b < 0 || b >= bits ? 0 : static_cast<int64_t>(static_cast<uint64_t>(a) << b);
  return b < 0 || b >= bits ? (a < 0 ? -1 : 0) : a >> b;
}

int64_t int_element(Op op, DType t, int64_t a, int64_t b) {
  uint64_t ua = static_cast<uint64_t>(a), ub = static_cast<uint64_t>(b);
  switch (op) {
    case Op::Neg:
      return static_cast<int64_t>(0 - ua);
    case Op::Abs:
      return a < 0 ? static_cast<int64_t>(0 - ua) : a;
    case Op::Sign:
      return (a > 0) - (a < 0);
    case Op::Relu:
      return a > 0 ? a : 0;
    case Op::IsNan:
    case Op::IsInf:
      return 0;
    case Op::IsFinite:
      return 1;
    case Op::LogicalNot:
      return a == 0;
    case Op::BitNot:
      return t == DType::Bool ? !a : ~a;
    case Op::Add:
      return t == DType::Bool ? (a || b) : static_cast<int64_t>(ua + ub);
    case Op::Sub:
      return static_cast<int64_t>(ua - ub);
    case Op::Mul:
      return static_cast<int64_t>(ua * ub);
    case Op::Pow:
      return int_power(a, b);
    case Op::Maximum:
      return std::max(a, b);
    case Op::Minimum:
      return std::min(a, b);
    case Op::Fmod:
      return b == 0 ? 0 : b == -1 ? 0 : a % b;
    case Op::Remainder: {
      int64_t m = b == 0 || b == -1 ? 0 : a % b;
      return m != 0 && (m < 0) != (b < 0) ? m + b : m;
    }
    case Op::FloorDiv: {
      if (b == 0) return 0;
      if (b == -1) return static_cast<int64_t>(0 - ua);
      return a / b - (a % b != 0 && (a < 0) != (b < 0));
    }
    case Op::Eq:
      return a == b;
    case Op::Ne:
      return a != b;
    case Op::Lt:
      return a < b;
    case Op::Le:
      return a <= b;
    case Op::Gt:
      return a > b;
    case Op::Ge:
      return a >= b;
    case Op::BitAnd:
      return a & b;
    case Op::BitOr:
      return a | b;
    case Op::BitXor:
      return a ^ b;
    case Op::Shl:
    case Op::Shr:
      return shifted(op, t, a, b);
    default:
      throw std::runtime_error(std::string("oracle: no integer ") + info(op).name);
  }
}

bool bool_element(Op op, double a, double b) {
  switch (op) {
    case Op::IsNan:
      return std::isnan(a);
    case Op::IsInf:
      return std::isinf(a);
    case Op::IsFinite:
      return std::isfinite(a);
    case Op::LogicalNot:
      return a == 0;
    case Op::Eq:
      return a == b;
    case Op::Ne:
      return a != b;
    case Op::Lt:
      return a < b;
    case Op::Le:
      return a <= b;
    case Op::Gt:
      return a > b;
    case Op::Ge:
      return a >= b;
    default:
      throw std::runtime_error(std::string("oracle: no comparison ") + info(op).name);
  }
}

static double half_value(uint16_t h) {
  int e = (h >> 10) & 31, m = h & 1023;
  double v = e == 31  ? (m ? std::nan("") : INFINITY)
             : e == 0 ? std::ldexp(m, -24)
                      : std::ldexp(1024 + m, e - 25);
  return h & 0x8000 ? -v : v;
}

template <class T>
static T load(const void* data, int64_t k) {
  T v;
  std::memcpy(&v, static_cast<const char*>(data) + static_cast<size_t>(k) * sizeof(T), sizeof(T));
  return v;
}

static double bfloat_value(uint16_t h) {
  uint32_t u = static_cast<uint32_t>(h) << 16;
  float x;
  std::memcpy(&x, &u, 4);
  return x;
}

Value read_memory(DType t, const Dims& shape, const void* data) {
  Value v(t, shape);
  for (int64_t k = 0; k < v.numel(); ++k) switch (t) {
      case DType::Float64:
        v.f[k] = load<double>(data, k);
        break;
      case DType::Float32:
        v.f[k] = load<float>(data, k);
        break;
      case DType::Float16:
        v.f[k] = half_value(load<uint16_t>(data, k));
        break;
      case DType::BFloat16:
        v.f[k] = bfloat_value(load<uint16_t>(data, k));
        break;
      case DType::Int64:
        v.i[k] = load<int64_t>(data, k);
        break;
      case DType::Int32:
        v.i[k] = load<int32_t>(data, k);
        break;
      case DType::Int16:
        v.i[k] = load<int16_t>(data, k);
        break;
      case DType::Int8:
        v.i[k] = load<int8_t>(data, k);
        break;
      case DType::UInt8:
        v.i[k] = load<uint8_t>(data, k);
        break;
      case DType::Bool:
        v.i[k] = load<uint8_t>(data, k) != 0;
        break;
    }
  return v;
}

}  // namespace ingot::oracle
