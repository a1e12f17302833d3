// See emit/values.h. The C expressions are those of graph/elementwise.def, made text by the
// preprocessor.
#include "backend/cuda/emit/values.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>
#include <limits>

#include "ingot/error.h"

namespace ingot::cuda {
namespace {

struct Expression {
  const char* name;
  int arity;
  TypeRule rule;
  const char* text;
};

const Expression* expression(Op op) {
  static const Expression table[] = {
#define INGOT_EW(E, name, arity, rule, expr, ga, gb) {#name, arity, TypeRule::rule, #expr},
#include "graph/elementwise.def"
#undef INGOT_EW
  };
  const int row = elementwise_row(op);
  return row < 0 ? nullptr : &table[row];
}

/// A short name that is part of functions' names.
const char* suffix(DType t) {
  static const char* names[] = {"f64", "f32", "f32", "f32", "i64", "i32", "i16", "i8", "u8", "b"};
  return names[static_cast<int>(t)];
}

std::string float_literal(double f) {
  char text[64];
  float x = static_cast<float>(f);
  if (!std::isfinite(x)) {
    std::snprintf(text, sizeof text, "ig_bits_f32(0x%08xu)", std::bit_cast<uint32_t>(x));
  } else {
    std::snprintf(text, sizeof text, "(%.9e)", static_cast<double>(x));
    std::string s = text;
    return s.insert(s.size() - 1, "f");
  }
  return text;
}

std::string double_literal(double f) {
  char text[64];
  if (!std::isfinite(f))
    std::snprintf(text, sizeof text, "ig_bits_f64(0x%016llxull)",
                  static_cast<unsigned long long>(std::bit_cast<uint64_t>(f)));
  else
    std::snprintf(text, sizeof text, "(%.17e)", f);
  return text;
}

/// The nearest value of a 16-bit type, ties to even.
float round_half(DType t, float x) {
  if (!std::isfinite(x) || x == 0) return x;
  int exponent = 0;
  std::frexp(x, &exponent);
  int digits = t == DType::BFloat16 ? 8 : 11, lowest = t == DType::BFloat16 ? -133 : -24;
  int unit = std::max(exponent - digits, lowest);
  double r = std::ldexp(std::nearbyint(std::ldexp(static_cast<double>(x), -unit)), unit);
  double most = t == DType::BFloat16 ? 3.3895313892515355e38 : 65504.0;
  if (std::abs(r) > most) r = std::copysign(std::numeric_limits<double>::infinity(), r);
  return static_cast<float>(r);
}

std::string int_literal(DType t, int64_t i) {
  if (i == std::numeric_limits<int64_t>::min()) return "(-9223372036854775807ll - 1)";
  std::string s = std::to_string(i);
  if (t == DType::Int64) s += "ll";
  if (t == DType::Int32 && i == std::numeric_limits<int32_t>::min()) return "(-2147483647 - 1)";
  return "((" + std::string(register_type(t)) + ")" + s + ")";
}

}  // namespace

const char* register_type(DType t) {
  static const char* names[] = {"double", "float", "float",       "float",         "long long",
                                "int",    "short", "signed char", "unsigned char", "unsigned char"};
  return names[static_cast<int>(t)];
}

const char* memory_type(DType t) { return is_half(t) ? "unsigned short" : register_type(t); }

size_t register_bytes(DType t) { return is_half(t) ? 4 : size_of(t); }

std::string to_register(DType t, const std::string& x) {
  if (t == DType::BFloat16) return "ig_up_bf16(" + x + ")";
  if (t == DType::Float16) return "ig_up_f16(" + x + ")";
  return x;
}

std::string to_memory(DType t, const std::string& x) {
  if (t == DType::BFloat16) return "ig_down_bf16(" + x + ")";
  if (t == DType::Float16) return "ig_down_f16(" + x + ")";
  return x;
}

std::string rounded(DType t, const std::string& x) {
  if (t == DType::BFloat16) return "ig_nearest_bf16(" + x + ")";
  return is_half(t) ? to_register(t, to_memory(t, x)) : x;
}

std::string cast(DType from, DType to, const std::string& x) {
  if (from == to) return x;
  if (to == DType::Bool) return "(unsigned char)(" + x + " != 0)";
  // Through int, so that a float out of range wraps as on the CPU instead of saturating.
  bool narrow = size_of(to) < 4 && !is_float(to) && is_float(from);
  if (narrow) return std::string("(") + register_type(to) + ")(int)(" + x + ")";
  return rounded(to, std::string("(") + register_type(to) + ")(" + x + ")");
}

std::string literal(DType t, double f, int64_t i) {
  switch (t) {
    case DType::Float64:
      return double_literal(f);
    case DType::Float32:
      return float_literal(f);
    case DType::Float16:
    case DType::BFloat16:
      return float_literal(round_half(t, static_cast<float>(f)));
    case DType::Bool:
      return i != 0 ? "((unsigned char)1)" : "((unsigned char)0)";
    default:
      return int_literal(t, i);
  }
}

std::string ElementwiseFunctions::call(Op op, DType t, const std::string& a, const std::string& b) {
  const Expression* e = expression(op);
  if (e == nullptr)
    throw Error(ErrorKind::Internal, "cuda_text",
                "a Compute instruction has an op that is not elementwise");
  std::string name = std::string("ew_") + e->name + "_" + suffix(t);
  std::string type = register_type(t), result = e->rule == TypeRule::Bool ? "unsigned char" : type;
  std::string value = e->text;
  if (is_float(t) && t != DType::Float64) {  // the same values in one instruction
    if (op == Op::Maximum) value = "ig_max(a, b)";
    if (op == Op::Minimum) value = "ig_min(a, b)";
    if (op == Op::Relu) value = "ig_max(a, T(0))";
  }
  if (t == DType::Bool && op == Op::BitNot) value = "a == T(0)";
  if (t == DType::Bool && e->rule != TypeRule::Bool)
    value = "(" + value + ") != 0";  // true + true is true
  std::string text = "IG_FN " + result + " " + name + "(" + type + " a" +
                     (e->arity == 2 ? ", " + type + " b" : "") + ") { typedef " + type +
                     " T; return (" + result + ")(" + value + "); }\n";
  defined_.insert(text);
  return name + "(" + a + (e->arity == 2 ? ", " + b : "") + ")";
}

std::string ElementwiseFunctions::definitions() const {
  std::string s;
  for (const std::string& f : defined_) s += f;
  return s;
}

std::string reduce_identity(Op op, DType t) {
  constexpr double inf = std::numeric_limits<double>::infinity();
  auto lowest = [&](bool low) -> std::string {
    if (is_float(t)) return literal(t == DType::Float64 ? t : DType::Float32, low ? -inf : inf, 0);
    int bits = static_cast<int>(size_of(t)) * 8;
    if (t == DType::Bool) return literal(t, 0, low ? 0 : 1);
    if (t == DType::UInt8) return literal(t, 0, low ? 0 : 255);
    int64_t top = static_cast<int64_t>((uint64_t{1} << (bits - 1)) - 1);
    return literal(t, 0, low ? -top - 1 : top);
  };
  DType r = is_half(t) ? DType::Float32 : t;
  switch (op) {
    case Op::Sum:
      return literal(r, 0, 0);
    case Op::Prod:
      return literal(r, 1, 1);
    case Op::Max:
      return lowest(true);
    case Op::Min:
      return lowest(false);
    default:
      return "{0, -1}";
  }
}

const char* reduce_function(Op op) {
  switch (op) {
    case Op::Sum:
      return "ig_sum";
    case Op::Prod:
      return "ig_prod";
    case Op::Max:
      return "ig_max";
    case Op::Min:
      return "ig_min";
    case Op::ArgMax:
      return "ig_argmax";
    case Op::ArgMin:
      return "ig_argmin";
    default:
      throw Error(ErrorKind::Internal, "cuda_text",
                  "a Reduce instruction has an op that is no reduction");
  }
}

}  // namespace ingot::cuda
