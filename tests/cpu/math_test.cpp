// Accuracy of the elementwise loops against libm in float64: at most 2.5 units in the last place
// for float32 over the whole range of bit patterns, 1e-14 for float64; infinities and NaN as libm.
#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <vector>

#include "backend/cpu/kernel/tile_types.h"

using namespace ingot;
using namespace ingot::cpu;

namespace {

struct Function {
  const char* name;
  Op op;
  double (*exact)(double);
};
#define FUNCTION(op, expr)                               \
  {                                                      \
#op, Op::op, [](double x) -> double { return expr; } \
  }
const Function kFunctions[] = {
    FUNCTION(Exp, std::exp(x)),        FUNCTION(Exp2, std::exp2(x)),
    FUNCTION(Expm1, std::expm1(x)),    FUNCTION(Log, std::log(x)),
    FUNCTION(Log2, std::log2(x)),      FUNCTION(Log10, std::log10(x)),
    FUNCTION(Log1p, std::log1p(x)),    FUNCTION(Sqrt, std::sqrt(x)),
    FUNCTION(Rsqrt, 1 / std::sqrt(x)), FUNCTION(Sin, std::sin(x)),
    FUNCTION(Cos, std::cos(x)),        FUNCTION(Tan, std::tan(x)),
    FUNCTION(Asin, std::asin(x)),      FUNCTION(Acos, std::acos(x)),
    FUNCTION(Atan, std::atan(x)),      FUNCTION(Sinh, std::sinh(x)),
    FUNCTION(Cosh, std::cosh(x)),      FUNCTION(Tanh, std::tanh(x)),
    FUNCTION(Asinh, std::asinh(x)),    FUNCTION(Acosh, std::acosh(x)),
    FUNCTION(Atanh, std::atanh(x)),    FUNCTION(Erf, std::erf(x)),
    FUNCTION(Erfc, std::erfc(x)),
};

double ulp(double x) {
  const double a = std::fabs(x);
  return a < 1.17549435e-38 ? 1.4012984643e-45 : std::ldexp(1.0, std::ilogb(a) - 23);
}

}  // namespace

TEST_CASE("float32 functions over all bit patterns, sampled") {
  constexpr int B = 2051;  // not a multiple of any vector
  std::vector<float> x(B), y(B);
  for (const Function& f : kFunctions) {
    const TileFn fn = find_op(f.op, TileType::F32, 0);
    REQUIRE(bool(fn));
    double worst = 0;
    float worst_at = 0;
    for (uint64_t u = 0; u < (uint64_t{1} << 32); u += uint64_t{B} * 9973) {
      for (int i = 0; i < B; ++i) {
        const uint32_t w = static_cast<uint32_t>(u + static_cast<uint64_t>(i) * 9973);
        std::memcpy(&x[static_cast<size_t>(i)], &w, 4);
      }
      fn(y.data(), x.data(), nullptr, nullptr, B);
      for (size_t i = 0; i < B; ++i) {
        const double r = f.exact(static_cast<double>(x[i])), got = static_cast<double>(y[i]);
        const float rf = static_cast<float>(r);
        if (std::isnan(rf) || std::isinf(rf)) {
          const bool same =
              std::isnan(rf) ? std::isnan(y[i]) : y[i] == rf || std::fabs(got) > 3.402e38;
          if (!same) FAIL(f.name << "(" << x[i] << ") = " << y[i] << ", should be " << rf);
          continue;
        }
        if (std::isinf(y[i]) && std::fabs(r) > 3.402e38) continue;
        const double e = std::fabs(got - r) / ulp(r);
        if (!(e <= worst)) {
          worst = e;
          worst_at = x[i];
        }
      }
    }
    INFO(f.name << ": " << worst << " ulp at " << worst_at);
    CHECK(worst <= 2.5);
  }
}

TEST_CASE("sigmoid is right away from underflow") {
  std::vector<float> x, y;
  for (float v = -87; v < 30; v += 0.0137f) x.push_back(v);
  y.resize(x.size());
  find_op(Op::Sigmoid, TileType::F32, 0)(y.data(), x.data(), nullptr, nullptr,
                                         static_cast<int64_t>(x.size()));
  for (size_t i = 0; i < x.size(); ++i) {
    const double r = 1 / (1 + std::exp(-static_cast<double>(x[i])));
    REQUIRE(std::fabs(static_cast<double>(y[i]) - r) <= 3 * ulp(r));
  }
}

TEST_CASE("float64 functions") {
  std::vector<double> x, y;
  for (int i = -400; i <= 400; ++i) x.push_back(i * 0.0371 + 1e-3);
  y.resize(x.size());
  for (const Function& f : kFunctions) {
    find_op(f.op, TileType::F64, 0)(y.data(), x.data(), nullptr, nullptr,
                                    static_cast<int64_t>(x.size()));
    for (size_t i = 0; i < x.size(); ++i) {
      const double r = f.exact(x[i]);
      const bool same = std::isnan(r) ? std::isnan(y[i])
                                      : y[i] == r || std::fabs(y[i] - r) <= 1e-14 * std::fabs(r);
      if (!same) FAIL(f.name << "(" << x[i] << ") = " << y[i] << ", should be " << r);
    }
  }
}

TEST_CASE("16-bit floats round to nearest even") {
  std::vector<float> x;
  for (uint64_t u = 0; u < (uint64_t{1} << 32); u += 65537 * 7) {
    const uint32_t w = static_cast<uint32_t>(u);
    float f;
    std::memcpy(&f, &w, 4);
    x.push_back(f);
  }
  for (float f : {65504.0f, 65519.0f, 65520.0f, 5.9604645e-8f, 2.9802322e-8f,
                  2.98023224e-8f * 1.0001f, 1.0009765f, 1.00048828125f})
    x.push_back(f);
  const int64_t n = static_cast<int64_t>(x.size());
  std::vector<uint16_t> h(x.size());
  std::vector<float> wide(x.size()), rounded(x.size());
  for (DType t : {DType::Float16, DType::BFloat16}) {
    find_narrow(t)(h.data(), x.data(), nullptr, nullptr, n);
    find_widen(t)(wide.data(), h.data(), nullptr, nullptr, n);
    find_round(t)(rounded.data(), x.data(), nullptr, nullptr, n);
    const double step = t == DType::Float16 ? 0x1p-10 : 0x1p-7,
                 least = t == DType::Float16 ? 0x1p-24 : 0x1p-133;
    for (size_t i = 0; i < x.size(); ++i) {
      if (std::isnan(x[i])) {
        REQUIRE((std::isnan(wide[i]) && std::isnan(rounded[i])));
        continue;
      }
      REQUIRE(wide[i] == rounded[i]);
      if (std::isinf(wide[i])) continue;
      const double v = static_cast<double>(x[i]), a = std::fabs(v);
      const double spacing = std::max(least, a > 0 ? std::ldexp(step, std::ilogb(a)) : 0);
      REQUIRE(std::fabs(static_cast<double>(wide[i]) - v) <= 0.5 * spacing);
    }
  }
}
