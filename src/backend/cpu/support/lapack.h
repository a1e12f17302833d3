// Factorisations of one matrix in column-major order, as LAPACK does them: by LAPACK itself
// for larger matrices where the machine has it (searched for at the first use; nothing is
// linked), by plain loops otherwise.
#pragma once
#include <cstdint>

namespace ingot::cpu {

/// LU with partial pivoting in place, pivots from 1. Returns 0, or the first column (from 1) whose
/// pivot is 0.
template <class T>
int lu_factor(T* a, int n, int* pivots);
/// Solves a x = b, or a^T x = b, for k columns of b in place, by lu_factor's result.
template <class T>
void lu_solve(const T* lu, const int* pivots, bool transposed, T* b, int n, int k);
/// The same for a triangular matrix. Returns 0, or the first column (from 1) with a 0 on the
/// diagonal.
template <class T>
int triangular_solve(const T* a, bool upper, bool transposed, bool unit, T* b, int n, int k);
/// u with u^T u = a, in a's upper triangle. Returns 0, or the order (from 1) of the first minor
/// that is not positive.
template <class T>
int cholesky_factor(T* a, int n);

/// "LAPACK (liblapack.so.3)" or "plain loops": what larger matrices use here.
const char* lapack_name();

}  // namespace ingot::cpu
