// Random numbers: counter-based (Philox 4x32-10), so a seed gives the same uniform bits on every
// device, however the work is fused, tiled or threaded. A Generator is a handle; each call takes
// the next range of its counter.
#pragma once
#include <memory>

#include "ingot/tensor.h"

namespace ingot {

/// Where random numbers come from: a 64-bit seed and a 64-bit counter. Copies share both. Safe from
/// several threads, whose calls then take turns in an unspecified order.
class Generator {
 public:
  explicit Generator(uint64_t seed = 0);
  uint64_t seed() const;
  /// Restarts from counter 0.
  void manual_seed(uint64_t seed) const;
  /// Blocks of four values used so far; saving and restoring seed and offset resumes the sequence.
  uint64_t offset() const;
  void set_offset(uint64_t offset) const;
  /// Takes the next n blocks and returns the first one's number. (For the library.)
  uint64_t take(uint64_t n, uint64_t* seed) const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

/// The generator used when none is given.
const Generator& default_generator();
/// Seeds the default generator.
void manual_seed(uint64_t seed);

/// Uniform in [0, 1). Floating types only (float32 when not given): Error(DType) otherwise.
Tensor rand(const Dims& shape, const Options& options = {},
            const Generator& generator = default_generator(), INGOT_LOC);
/// Normal with mean 0 and variance 1.
Tensor randn(const Dims& shape, const Options& options = {},
             const Generator& generator = default_generator(), INGOT_LOC);
/// Integers low <= n < high; int64 when no type is given. Error(Value) unless low < high and high -
/// low <= 2^32.
Tensor randint(int64_t low, int64_t high, const Dims& shape, const Options& options = {},
               const Generator& generator = default_generator(), INGOT_LOC);
Tensor randint(int64_t high, const Dims& shape, const Options& options = {},
               const Generator& generator = default_generator(),
               INGOT_LOC);  ///< randint(0, high, shape)
/// Uniform in [from, to). Error(Value) unless from <= to, Error(DType) unless floating.
Tensor uniform(double from, double to, const Dims& shape, const Options& options = {},
               const Generator& generator = default_generator(), INGOT_LOC);
/// Normal with this mean and standard deviation, numbers or tensors (broadcast). Error(Value) when
/// std is negative (a tensor's: at evaluation), Error(DType) unless floating.
Tensor normal(double mean, double std, const Dims& shape, const Options& options = {},
              const Generator& generator = default_generator(), INGOT_LOC);
Tensor normal(const Tensor& mean, const Operand& std,
              const Generator& generator = default_generator(), INGOT_LOC);
/// 1 with probability p, else 0.
Tensor bernoulli(const Dims& shape, double p, const Options& options = {},
                 const Generator& generator = default_generator(), INGOT_LOC);
/// 1 with the probability each element holds, else 0; same type. Error(Value) at evaluation where
/// one is not between 0 and 1.
Tensor bernoulli(const Tensor& p, const Generator& generator = default_generator(), INGOT_LOC);
/// Same shape, and type and device unless given.
Tensor rand_like(const Tensor& x, const Options& options = {},
                 const Generator& generator = default_generator(), INGOT_LOC);
Tensor randn_like(const Tensor& x, const Options& options = {},
                  const Generator& generator = default_generator(), INGOT_LOC);
Tensor randint_like(const Tensor& x, int64_t low, int64_t high, const Options& options = {},
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
