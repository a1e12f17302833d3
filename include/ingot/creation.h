// New tensors besides those of ops.h and random.h.
#pragma once
#include "ingot/ops.h"
#include "ingot/random.h"

namespace ingot {

/// `steps` values from base^start to base^end, evenly spaced in the exponent. Error(Value) when
/// steps is negative.
Tensor logspace(double start, double end, int64_t steps, double base = 10,
                const Options& options = {}, INGOT_LOC);
/// [n, m] with ones on and below the diagonal (moved up by `diagonal`), zeros above.
Tensor tri(int64_t n, std::optional<int64_t> m = {}, int64_t diagonal = 0,
           const Options& options = {}, INGOT_LOC);
/// Row and column indices, [2, k] int64, of the lower and upper triangle of a [row, col] matrix.
Tensor tril_indices(int64_t row, int64_t col, int64_t offset = 0, const Options& options = {},
                    INGOT_LOC);
Tensor triu_indices(int64_t row, int64_t col, int64_t offset = 0, const Options& options = {},
                    INGOT_LOC);
/// One tensor per vector, all of the shape their sizes make, constant along the other dims: views.
/// indexing "ij" (matrix order) or "xy" (the first two swapped, as NumPy's default). Error(Value)
/// for another word or no tensors, Error(Shape) unless each has at most one dim.
std::vector<Tensor> meshgrid(const std::vector<Tensor>& tensors, std::string_view indexing = "ij",
                             INGOT_LOC);

/// Throws Error(Value) when an integer type cannot hold the number: too large, too small, infinite
/// or NaN. Floats are truncated to integers and negative integers wrap in uint8, as in PyTorch.
/// Floating types take every number.
void check_fits(const Scalar& value, DType type, const char* op, const SourceLoc& loc);

// ---- Random numbers

Tensor randint(int64_t high, const Dims& shape, const Options& options = {},
               const Generator& generator = default_generator(),
               INGOT_LOC);  ///< randint(0, high, shape)
/// Same shape, and type and device unless given.
Tensor randint_like(const Tensor& x, int64_t low, int64_t high, const Options& options = {},
                    const Generator& generator = default_generator(), INGOT_LOC);
/// Uniform in [from, to). Error(Value) unless from <= to, Error(DType) unless floating.
Tensor uniform(double from, double to, const Dims& shape, const Options& options = {},
               const Generator& generator = default_generator(), INGOT_LOC);
/// Normal with this mean and standard deviation, numbers or tensors (broadcast). Error(Value) when
/// std is negative (a tensor's: at evaluation), Error(DType) unless floating.
Tensor normal(double mean, double std, const Dims& shape, const Options& options = {},
              const Generator& generator = default_generator(), INGOT_LOC);
Tensor normal(const Tensor& mean, const Operand& std,
              const Generator& generator = default_generator(), INGOT_LOC);

/// The numbers from 0 to n - 1 in random order; int64 when no type is given. Error(Value) when n is
/// negative.
Tensor randperm(int64_t n, const Options& options = {},
                const Generator& generator = default_generator(), INGOT_LOC);
/// num_samples indices drawn from each row of weights [C] or [N, C] (not negative, not all 0; they
/// need not add up to 1): int64. Error(DType) unless floating, Error(Shape) with other dims,
/// Error(Value) unless 1 <= num_samples, and <= C without replacement.
Tensor multinomial(const Tensor& weights, int64_t num_samples, bool replacement = false,
                   const Generator& generator = default_generator(), INGOT_LOC);

}  // namespace ingot
