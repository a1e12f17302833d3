// Linear algebra. Products need equal types, Error(DType) otherwise, and sizes that fit,
// Error(Shape). The factorisations (solve, cholesky, inv, det, slogdet and what is built on them)
// run on the CPU, by LAPACK where the machine has it; operands on another device are copied there
// and the results back, which explain() shows as copies. They take float32 and float64,
// Error(DType) otherwise; a matrix that is singular or not positive definite raises Error(Value)
// when the value is computed.
#pragma once
#include <string_view>
#include <vector>

#include "ingot/tensor.h"

namespace ingot {

// ---- Products

/// PyTorch's cases: vector times vector (0-d), matrix times vector, and matrices under broadcast
/// batch dims. Integers too. Throws Error(Shape) when the inner sizes or batches differ,
/// Error(DType) when the types differ.
Tensor matmul(const Tensor& a, const Tensor& b, INGOT_LOC);
/// x @ weight^T + bias: x [..., in], weight [out, in], bias [out] or undefined.
Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias = {}, INGOT_LOC);
Tensor mm(const Tensor& a, const Tensor& b, INGOT_LOC);  ///< matrices only
Tensor bmm(const Tensor& a, const Tensor& b,
           INGOT_LOC);  ///< batches of matrices [B, M, K] and [B, K, N] only
Tensor mv(const Tensor& mat, const Tensor& vec, INGOT_LOC);  ///< matrix times vector
Tensor dot(const Tensor& a, const Tensor& b, INGOT_LOC);     ///< two vectors of the same size
inline Tensor vdot(const Tensor& a, const Tensor& b, INGOT_LOC) { return dot(a, b, loc); }
Tensor inner(const Tensor& a, const Tensor& b,
             INGOT_LOC);  ///< sums over the last dims; a 0-d operand multiplies
Tensor outer(const Tensor& a, const Tensor& b, INGOT_LOC);  ///< a[i] * b[j] of two vectors
inline Tensor ger(const Tensor& a, const Tensor& b, INGOT_LOC) { return outer(a, b, loc); }
/// Kronecker product.
Tensor kron(const Tensor& a, const Tensor& b, INGOT_LOC);
/// The sum of the products along dim, broadcast.
Tensor vecdot(const Tensor& a, const Tensor& b, int64_t dim = -1, INGOT_LOC);
/// Vector product along a dim of size 3.
Tensor cross(const Tensor& a, const Tensor& b, int64_t dim = -1, INGOT_LOC);
/// beta * x + alpha * (mat1 @ mat2). With beta 0 x does not count, NaN or not, as in all of these.
Tensor addmm(const Tensor& x, const Tensor& mat1, const Tensor& mat2, const Scalar& beta = 1,
             const Scalar& alpha = 1, INGOT_LOC);
Tensor addmv(const Tensor& x, const Tensor& mat, const Tensor& vec, const Scalar& beta = 1,
             const Scalar& alpha = 1, INGOT_LOC);
Tensor addr(const Tensor& x, const Tensor& vec1, const Tensor& vec2, const Scalar& beta = 1,
            const Scalar& alpha = 1, INGOT_LOC);
/// beta * x + alpha * (batch1 @ batch2), and the same summed over the batch.
Tensor baddbmm(const Tensor& x, const Tensor& batch1, const Tensor& batch2, const Scalar& beta = 1,
               const Scalar& alpha = 1, INGOT_LOC);
Tensor addbmm(const Tensor& x, const Tensor& batch1, const Tensor& batch2, const Scalar& beta = 1,
              const Scalar& alpha = 1, INGOT_LOC);
/// Sums over pairs of dims: the last `dims` of a with the first of b, or the named ones.
/// Error(Shape) when their sizes differ.
Tensor tensordot(const Tensor& a, const Tensor& b, int64_t dims = 2, INGOT_LOC);
Tensor tensordot(const Tensor& a, const Tensor& b, const Dims& dims_a, const Dims& dims_b,
                 INGOT_LOC);
/// Products and sums by index letters: "ij,jk->ik"; repeated letters of one operand take a
/// diagonal, letters not in the result are summed, "..." means batch dims. Without "->" the letters
/// that occur once, in order. Error(Value) for an invalid equation, Error(Shape) when sizes of a
/// letter differ.
Tensor einsum(std::string_view equation, const std::vector<Tensor>& operands, INGOT_LOC);
/// The product of matrices (the first and last may be vectors), in the cheapest order.
Tensor multi_dot(const std::vector<Tensor>& tensors, INGOT_LOC);
/// The sum along the diagonal of a matrix.
Tensor trace(const Tensor& x, INGOT_LOC);
/// A square matrix (or a batch) times itself n times; n = 0 the identity, n < 0 powers of the
/// inverse.
Tensor matrix_power(const Tensor& x, int64_t n, INGOT_LOC);

// ---- Factorisations

/// x with a x = b: a [.., N, N], b [.., N, K], or [N] as one column; or, when left is false, x a =
/// b.
Tensor solve(const Tensor& a, const Tensor& b, bool left = true, INGOT_LOC);
/// The same for a triangular a; only that triangle is read, and with unitriangular the diagonal
/// counts as ones.
Tensor solve_triangular(const Tensor& a, const Tensor& b, bool upper, bool left = true,
                        bool unitriangular = false, INGOT_LOC);
/// Lower l with l l^T = x for symmetric positive definite x, of which one triangle is read; upper:
/// its transpose.
Tensor cholesky(const Tensor& x, bool upper = false, INGOT_LOC);
/// x with (l l^T) x = b, l being cholesky's result (or u^T u, upper).
Tensor cholesky_solve(const Tensor& b, const Tensor& l, bool upper = false, INGOT_LOC);
Tensor inv(const Tensor& x, INGOT_LOC);  ///< the inverse of square matrices
inline Tensor inverse(const Tensor& x, INGOT_LOC) { return inv(x, loc); }
Tensor det(const Tensor& x, INGOT_LOC);  ///< 0 for a singular matrix, no error
Tensor logdet(const Tensor& x,
              INGOT_LOC);  ///< NaN where the determinant is negative, -inf where it is 0
/// Sign and logarithm of the absolute value of the determinant; (0, -inf) for a singular matrix.
SignLogdet slogdet(const Tensor& x, INGOT_LOC);

}  // namespace ingot
