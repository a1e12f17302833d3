// Linear algebra.
#include "ingot/linalg.h"
#include "bind.h"

namespace ingot_python {

using T = const Tensor&;
using L = SourceLoc;
using Many = const std::vector<Tensor>&;

static void bind_products(Table& t) {
#define PRODUCT(name, other) \
  t.both(                    \
      #name, [](T a, T b, L loc) { return name(a, b, loc); }, #other##_a)
  PRODUCT(mm, mat2);
  PRODUCT(bmm, mat2);
  PRODUCT(mv, vec);
  PRODUCT(dot, tensor);
  PRODUCT(vdot, other);
  PRODUCT(inner, other);
  PRODUCT(outer, vec2);
  PRODUCT(ger, vec2);
  PRODUCT(kron, other);
#undef PRODUCT
  t.function(
      "vecdot", [](T a, T b, int64_t d, L loc) { return vecdot(a, b, d, loc); }, "x"_a, "y"_a,
      nb::kw_only(), "dim"_a = -1);
  t.function(
      "linalg_cross", [](T a, T b, int64_t d, L loc) { return cross(a, b, d, loc); }, "input"_a,
      "other"_a, nb::kw_only(), "dim"_a = -1);
#define ADDED(name, a1, a2)                                               \
  t.both(                                                                 \
      #name,                                                              \
      [](T x, T a, T b, const Scalar& beta, const Scalar& alpha, L loc) { \
        return name(x, a, b, beta, alpha, loc);                           \
      },                                                                  \
      #a1##_a, #a2##_a, nb::kw_only(), "beta"_a = 1, "alpha"_a = 1)
  ADDED(addmm, mat1, mat2);
  ADDED(addmv, mat, vec);
  ADDED(addr, vec1, vec2);
  ADDED(baddbmm, batch1, batch2);
  ADDED(addbmm, batch1, batch2);
#undef ADDED
  t.function(
      "tensordot_n", [](T a, T b, int64_t n, L loc) { return tensordot(a, b, n, loc); }, "a"_a,
      "b"_a, "dims"_a = 2);
  t.function(
      "tensordot_dims",
      [](T a, T b, const Dims& p, const Dims& q, L loc) { return tensordot(a, b, p, q, loc); },
      "a"_a, "b"_a, "dims_a"_a, "dims_b"_a);
  t.function(
      "einsum_list", [](std::string_view e, Many x, L loc) { return einsum(e, x, loc); },
      "equation"_a, "operands"_a);
  t.function(
      "multi_dot", [](Many x, L loc) { return multi_dot(x, loc); }, "tensors"_a);
  t.both("trace", [](T x, L loc) { return trace(x, loc); });
  t.both(
      "matrix_power", [](T x, int64_t n, L loc) { return matrix_power(x, n, loc); }, "n"_a);
}

void bind_linalg(Table& t) {
  bind_products(t);
  t.function(
      "linalg_solve", [](T a, T b, bool left, L loc) { return solve(a, b, left, loc); }, "A"_a,
      "B"_a, nb::kw_only(), "left"_a = true);
  t.function(
      "linalg_solve_triangular",
      [](T a, T b, bool upper, bool left, bool unit, L loc) {
        return solve_triangular(a, b, upper, left, unit, loc);
      },
      "A"_a, "B"_a, nb::kw_only(), "upper"_a, "left"_a = true, "unitriangular"_a = false);
  t.both(
      "cholesky", [](T x, bool upper, L loc) { return cholesky(x, upper, loc); },
      "upper"_a = false);
  t.both(
      "cholesky_solve",
      [](T b, T l, bool upper, L loc) { return cholesky_solve(b, l, upper, loc); }, "L"_a,
      "upper"_a = false);
  t.both("inverse", [](T x, L loc) { return inv(x, loc); });
  t.both("det", [](T x, L loc) { return det(x, loc); });
  t.both("logdet", [](T x, L loc) { return logdet(x, loc); });
  t.function(
      "slogdet_pair",
      [](T x, L loc) {
        SignLogdet s = slogdet(x, loc);
        return std::make_pair(s.sign, s.logabsdet);
      },
      "input"_a);
}

}  // namespace ingot_python
