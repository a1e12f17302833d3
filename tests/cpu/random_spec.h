// Random kernels for comparing the CPU backend with the interpreter. Data are small integers
// and the ops keep them so, which makes every order of summation exact: results must agree to the
// bit.
#pragma once
#include <random>

#include "spec_interpreter.h"

namespace ingot::test {

class SpecMaker {
 public:
  /// floats: float32 on mostly dense rows, the kernels that become machine code.
  explicit SpecMaker(uint64_t seed, bool floats = false) : rng_(seed), floats_(floats) {}
  /// A kernel and its buffers' contents.
  KernelSpec make(std::vector<Bytes>& data);
  /// The same kernel on other sizes: not available for all; nullopt then.
  int pick(int lo, int hi) { return std::uniform_int_distribution<int>(lo, hi)(rng_); }
  bool chance(int percent) { return pick(1, 100) <= percent; }

 private:
  int add(Instr i);
  int add_buffer(DType t, int64_t numel, bool written);
  DType any_type();
  DType num_type();
  Affine dense(Level level, std::vector<int64_t> shape, int64_t& numel, bool broadcast);
  int load(Level level, DType t, bool whole);
  int bounded_load(Level level, DType t);
  int indirect_load(Level level, DType t);
  int source(Level level);
  int value_of(Level level, DType t);
  int row_mask(Level level);
  int host_number(Level level);
  int cast(int v, DType t, Level level);
  int compute(Level level);
  int reduce();
  void store(int v);

  std::mt19937_64 rng_;
  bool floats_, columns_ = false;  // columns: memory runs along the outer axis
  KernelSpec k_;
  std::vector<Bytes>* data_ = nullptr;
};

}  // namespace ingot::test
