// Elementwise functions, movement and creation beyond ops.h.
#include "bind.h"
#include "ingot/creation.h"
#include "ingot/elementwise.h"
#include "ingot/movement.h"

namespace ingot_python {
namespace {

using T = const Tensor&;
using O = const Operand&;
using L = SourceLoc;
using Many = const std::vector<Tensor>&;
using OptType = std::optional<DType>;
using OptDevice = std::optional<DeviceIn>;
using OptDim = std::optional<int64_t>;

void bind_functions(Table& t) {
#define UNARY(name) t.both(#name, [](T x, L loc) { return name(x, loc); })
#define ALIAS(alias, name) t.both(#alias, [](T x, L loc) { return name(x, loc); })
#define INGOT_FUNCTION(name) UNARY(name);
#include "ingot/methods.def"
  nb::list in_place;  // _tensor.py adds the forms of these names with an underscore
#define INGOT_FUNCTION(name) in_place.append(#name);
#include "ingot/methods.def"
  t.module().attr("_in_place_functions") = in_place;
  ALIAS(arcsinh, asinh);
  ALIAS(arccosh, acosh);
  ALIAS(arctanh, atanh);
  UNARY(sgn);
  UNARY(signbit);
  UNARY(isposinf);
  UNARY(isneginf);
#undef UNARY
#undef ALIAS
#define BINARY(name) \
  t.both(            \
      #name, [](T a, O b, L loc) { return name(a, b, loc); }, "other"_a)
  BINARY(hypot);
  BINARY(copysign);
  BINARY(fmax);
  BINARY(fmin);
  BINARY(logaddexp);
  BINARY(logaddexp2);
  BINARY(xlogy);
  BINARY(ldexp);
#undef BINARY
  t.both(
      "heaviside", [](T a, O b, L loc) { return heaviside(a, b, loc); }, "values"_a);
  t.both(
      "float_power", [](T a, O b, L loc) { return float_power(a, b, loc); }, "exponent"_a);
  t.function(
      "xlogy", [](const Scalar& a, T b, L loc) { return xlogy(a, b, loc); }, "self"_a, "other"_a);
  t.function(
      "rsub", [](T a, O b, const Scalar& alpha, L loc) { return rsub(a, b, alpha, loc); },
      "input"_a, "other"_a, nb::kw_only(), "alpha"_a = 1);
  t.function(
      "polygamma", [](int64_t n, T x, L loc) { return polygamma(n, x, loc); }, "n"_a, "input"_a);
  t.both(
      "logit", [](T x, std::optional<double> eps, L loc) { return logit(x, eps, loc); },
      "eps"_a.none() = nb::none());
  t.both(
      "nan_to_num",
      [](T x, std::optional<double> nan, std::optional<double> hi, std::optional<double> lo,
         L loc) { return nan_to_num(x, nan.value_or(0), hi, lo, loc); },
      "nan"_a.none() = nb::none(), "posinf"_a.none() = nb::none(), "neginf"_a.none() = nb::none());
  t.both(
      "isclose",
      [](T a, T b, double r, double at, bool nan, L loc) { return isclose(a, b, r, at, nan, loc); },
      "other"_a, "rtol"_a = 1e-5, "atol"_a = 1e-8, "equal_nan"_a = false);
  t.both(
      "allclose",
      [](T a, T b, double r, double at, bool nan, L loc) {
        return allclose(a, b, r, at, nan, loc);
      },
      "other"_a, "rtol"_a = 1e-5, "atol"_a = 1e-8, "equal_nan"_a = false);
  t.both(
      "equal", [](T a, T b, L loc) { return equal(a, b, loc); }, "other"_a);
  t.both(
      "lerp", [](T a, T b, O w, L loc) { return lerp(a, b, w, loc); }, "end"_a, "weight"_a);
  t.both(
      "addcmul", [](T x, T a, T b, const Scalar& v, L loc) { return addcmul(x, a, b, v, loc); },
      "tensor1"_a, "tensor2"_a, nb::kw_only(), "value"_a = 1);
  t.both(
      "addcdiv", [](T x, T a, T b, const Scalar& v, L loc) { return addcdiv(x, a, b, v, loc); },
      "tensor1"_a, "tensor2"_a, nb::kw_only(), "value"_a = 1);
}

void bind_views(Table& t) {
  t.both(
      "unflatten", [](T x, int64_t d, const Dims& s, L loc) { return unflatten(x, d, s, loc); },
      "dim"_a, "sizes"_a);
  for (const char* name : {"movedim", "moveaxis"})
    t.both(
        name, [](T x, const Dims& a, const Dims& b, L loc) { return movedim(x, a, b, loc); },
        "source"_a, "destination"_a);
  t.both("ravel", [](T x, L loc) { return ravel(x, loc); });
  t.both("fliplr", [](T x, L loc) { return fliplr(x, loc); });
  t.both("flipud", [](T x, L loc) { return flipud(x, loc); });
  t.both(
      "rot90", [](T x, int64_t k, const Dims& d, L loc) { return rot90(x, k, d, loc); }, "k"_a = 1,
      "dims"_a = nb::make_tuple(0, 1));
  t.both(
      "unbind", [](T x, int64_t d, L loc) { return unbind(x, d, loc); }, "dim"_a = 0);
  t.both(
      "tensor_split", [](T x, int64_t n, int64_t d, L loc) { return tensor_split(x, n, d, loc); },
      "sections"_a, "dim"_a = 0);
  t.both(
      "tensor_split",
      [](T x, const std::vector<int64_t>& n, int64_t d, L loc) {
        return tensor_split(x, n, d, loc);
      },
      "indices"_a, "dim"_a = 0);
  t.both(
      "diagonal",
      [](T x, int64_t o, int64_t a, int64_t b, L loc) { return diagonal(x, o, a, b, loc); },
      "offset"_a = 0, "dim1"_a = 0, "dim2"_a = 1);
  t.both(
      "roll",
      [](T x, const Dims& s, const std::optional<Dims>& d, L loc) {
        return roll(x, s, d.value_or(Dims()), loc);
      },
      "shifts"_a, "dims"_a.none() = nb::none());
  t.function(
      "tile", [](T x, const Dims& d, L loc) { return tile(x, d, loc); }, "input"_a, "dims"_a);
  auto of_size = [](Tensor y, OptDim d, OptDim size, const SourceLoc& loc) {
    const int64_t n = y.size(d.value_or(0), loc);
    if (size && *size != n)
      throw Error(
          ErrorKind::Value, "repeat_interleave",
          "output_size is " + std::to_string(*size) + ", but the result has " + std::to_string(n),
          loc);
    return y;
  };
  t.both(
      "repeat_interleave",
      [of_size](T x, int64_t n, OptDim d, OptDim size, L loc) {
        return of_size(repeat_interleave(x, n, d, loc), d, size, loc);
      },
      "repeats"_a, "dim"_a.none() = nb::none(), nb::kw_only(), "output_size"_a.none() = nb::none());
  t.both(
      "repeat_interleave",
      [of_size](T x, T n, OptDim d, OptDim size, L loc) {
        return of_size(repeat_interleave(x, n, d, loc), d, size, loc);
      },
      "repeats"_a, "dim"_a.none() = nb::none(), nb::kw_only(), "output_size"_a.none() = nb::none());
  t.both(
      "diag", [](T x, int64_t d, L loc) { return diag(x, d, loc); }, "diagonal"_a = 0);
  t.both(
      "diag_embed",
      [](T x, int64_t o, int64_t a, int64_t b, L loc) { return diag_embed(x, o, a, b, loc); },
      "offset"_a = 0, "dim1"_a = -2, "dim2"_a = -1);
  t.both(
      "diagflat", [](T x, int64_t o, L loc) { return diagflat(x, o, loc); }, "offset"_a = 0);
#define JOIN(name) \
  t.function(      \
      #name, [](Many x, L loc) { return name(x, loc); }, "tensors"_a)
  JOIN(hstack);
  JOIN(vstack);
  JOIN(row_stack);
  JOIN(dstack);
  JOIN(column_stack);
#undef JOIN
  t.function(
      "block_diag_list", [](Many x, L loc) { return block_diag(x, loc); }, "tensors"_a);
  t.function(
      "broadcast_list", [](Many x, L loc) { return broadcast_tensors(x, loc); }, "tensors"_a);
  t.function(
      "meshgrid_list", [](Many x, std::string_view i, L loc) { return meshgrid(x, i, loc); },
      "tensors"_a, "indexing"_a = "ij");
  t.function(
      "pad_mode",
      [](T x, const Dims& p, std::string_view mode, L loc) {
        return pad(x, p, mode, Scalar(0.0), loc);
      },
      "input"_a, "pad"_a, "mode"_a);
  t.function(
      "atleast_1d", [](T x, L loc) { return atleast_1d(x, loc); }, "input"_a);
  t.function(
      "atleast_2d", [](T x, L loc) { return atleast_2d(x, loc); }, "input"_a);
  t.function(
      "atleast_3d", [](T x, L loc) { return atleast_3d(x, loc); }, "input"_a);
}

void bind_makers(Table& t) {
  t.function(
      "logspace",
      [](double a, double b, int64_t n, double base, const OptType& type, const OptDevice& d,
         L loc) { return logspace(a, b, n, base, options_of(type, d), loc); },
      "start"_a, "end"_a, "steps"_a, "base"_a = 10.0, nb::kw_only(), "dtype"_a.none() = nb::none(),
      "device"_a.none() = nb::none());
#define TRIANGLE(name)                                                                      \
  t.function(                                                                               \
      #name,                                                                                \
      [](int64_t r, int64_t c, int64_t o, const OptType& type, const OptDevice& d, L loc) { \
        return name(r, c, o, options_of(type, d), loc);                                     \
      },                                                                                    \
      "row"_a, "col"_a, "offset"_a = 0, nb::kw_only(), "dtype"_a.none() = nb::none(),       \
      "device"_a.none() = nb::none())
  TRIANGLE(tril_indices);
  TRIANGLE(triu_indices);
#undef TRIANGLE
  t.function(
      "randint_like",
      [](T x, int64_t lo, int64_t hi, const OptType& type, const OptDevice& d, L loc) {
        return randint_like(x, lo, hi, options_of(type, d), default_generator(), loc);
      },
      "input"_a, "low"_a, "high"_a, nb::kw_only(), "dtype"_a.none() = nb::none(),
      "device"_a.none() = nb::none());
}

}  // namespace

void bind_further(Table& t) {
  bind_functions(t);
  bind_views(t);
  bind_makers(t);
}

}  // namespace ingot_python
