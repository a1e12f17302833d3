// The in-place forms: each computes what the function of the same name computes and writes it into
// the tensor.
#include "ingot/activation.h"
#include "ingot/creation.h"
#include "ingot/elementwise.h"
#include "ingot/movement.h"
#include "ops/common.h"

namespace ingot {

#define INGOT_UNARY_(name)                                        \
  Tensor& Tensor::name##_(SourceLoc loc) {                        \
    write_result(*this, ingot::name(*this, loc), #name "_", loc); \
    return *this;                                                 \
  }
#define INGOT_BINARY_(name)                                          \
  Tensor& Tensor::name##_(const Operand& b, SourceLoc loc) {         \
    write_result(*this, ingot::name(*this, b, loc), #name "_", loc); \
    return *this;                                                    \
  }
#include "ingot/methods.def"

#define INGOT_FORM(name, parameters, ...)                                      \
  Tensor& Tensor::name##_ parameters {                                         \
    write_result(*this, ingot::name(*this, __VA_ARGS__, loc), #name "_", loc); \
    return *this;                                                              \
  }
INGOT_FORM(div, (const Operand& v, std::string_view rounding_mode, SourceLoc loc), v, rounding_mode)
INGOT_FORM(masked_fill, (const Tensor& mask, const Operand& value, SourceLoc loc), mask, value)
INGOT_FORM(lerp, (const Tensor& end, const Operand& weight, SourceLoc loc), end, weight)
INGOT_FORM(addcmul, (const Tensor& a, const Tensor& b, const Scalar& value, SourceLoc loc), a, b,
           value)
INGOT_FORM(addcdiv, (const Tensor& a, const Tensor& b, const Scalar& value, SourceLoc loc), a, b,
           value)
INGOT_FORM(nan_to_num,
           (double nan, std::optional<double> posinf, std::optional<double> neginf, SourceLoc loc),
           nan, posinf, neginf)
INGOT_FORM(logit, (std::optional<double> eps, SourceLoc loc), eps)
INGOT_FORM(round, (int64_t decimals, SourceLoc loc), decimals)
INGOT_FORM(leaky_relu, (double negative_slope, SourceLoc loc), negative_slope)
INGOT_FORM(elu, (double alpha, SourceLoc loc), alpha)
INGOT_FORM(hardtanh, (double min_val, double max_val, SourceLoc loc), min_val, max_val)
INGOT_FORM(threshold, (double threshold, double value, SourceLoc loc), threshold, value)
INGOT_FORM(tril, (int64_t diagonal, SourceLoc loc), diagonal)
INGOT_FORM(triu, (int64_t diagonal, SourceLoc loc), diagonal)
#undef INGOT_FORM

Tensor& Tensor::fill_(const Tensor& v, SourceLoc where) {
  SourceLoc loc = user_loc(where);
  if (node_of(v, "fill_", loc)->rank() != 0)
    fail(ErrorKind::Shape, "fill_", "takes a number or a 0-d tensor, not " + describe(v), loc,
         "use copy_()");
  return copy_(Operand(v, loc), loc);
}

Tensor& Tensor::fill_diagonal_(const Scalar& value, SourceLoc where) {
  SourceLoc loc = user_loc(where);
  if (node_of(*this, "fill_diagonal_", loc)->rank() != 2)
    fail(ErrorKind::Dim, "fill_diagonal_", "takes a matrix, not " + describe(*this), loc);
  ingot::diagonal(*this, 0, 0, 1, loc).fill_(value, loc);
  return *this;
}

// ---- Random numbers

namespace {

Options same(const Tensor& x, const char* op, const SourceLoc& loc) {
  NodeRef n = node_of(x, op, loc);
  return {n->dtype, n->device};
}

}  // namespace

Tensor& Tensor::uniform_(double from, double to, const Generator& g, SourceLoc where) {
  SourceLoc loc = user_loc(where);
  write_result(*this, uniform(from, to, shape(loc), same(*this, "uniform_", loc), g, loc),
               "uniform_", loc);
  return *this;
}
Tensor& Tensor::normal_(double mean, double std, const Generator& g, SourceLoc where) {
  SourceLoc loc = user_loc(where);
  write_result(*this, normal(mean, std, shape(loc), same(*this, "normal_", loc), g, loc), "normal_",
               loc);
  return *this;
}
Tensor& Tensor::bernoulli_(double p, const Generator& g, SourceLoc where) {
  SourceLoc loc = user_loc(where);
  write_result(*this, bernoulli(shape(loc), p, same(*this, "bernoulli_", loc), g, loc),
               "bernoulli_", loc);
  return *this;
}
Tensor& Tensor::random_(int64_t from, int64_t to, const Generator& g, SourceLoc where) {
  SourceLoc loc = user_loc(where);
  write_result(*this, randint(from, to, shape(loc), same(*this, "random_", loc), g, loc), "random_",
               loc);
  return *this;
}
Tensor& Tensor::exponential_(double lambd, const Generator& g, SourceLoc where) {
  SourceLoc loc = user_loc(where);
  LocScope scope(loc);
  if (!(lambd > 0))
    fail(ErrorKind::Value, "exponential_", "lambd must be positive, not " + text_of(lambd), loc);
  Options o = same(*this, "exponential_", loc);
  // 1 - u is in (0, 1], so the logarithm is finite.
  Tensor u =
      rand(shape(), {*o.dtype == DType::Float64 ? DType::Float64 : DType::Float32, *o.device}, g);
  write_result(*this, ingot::log(1.0 - u) / -lambd, "exponential_", loc);
  return *this;
}

}  // namespace ingot
