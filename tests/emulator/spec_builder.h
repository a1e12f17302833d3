// Writes KernelSpecs by hand, for tests: instructions are added in order, buffers are made to fit
// their maps.
#pragma once
#include <string>
#include <vector>

#include "codegen/kernel_spec.h"

namespace ingot::test {

class SpecBuilder {
 public:
  SpecBuilder(std::vector<int64_t> extent, int n_outer) {
    k.extent = std::move(extent);
    k.n_outer = n_outer;
  }
  /// Row-major strides over the axes in `keep` (all by default), 0 elsewhere.
  Affine dense(std::vector<bool> keep = {}) const;
  Affine outer_dense() const;
  Affine affine(std::vector<int64_t> stride, int64_t offset = 0) const {
    return {offset, std::move(stride)};
  }

  int load(DType t, const Affine& map, Level level = Level::Elem);
  int load(DType t) { return load(t, dense()); }
  /// buffers[buffer] read a second time, elsewhere.
  int load_from(int buffer, const Affine& map, Level level = Level::Elem);
  int load_indirect(DType t, const Affine& map, int index, int64_t stride, int64_t extent,
                    Level level = Level::Elem);
  void bound(int instr, const Affine& at, int64_t extent, double fill = 0);
  int constant(DType t, double x);
  int arg(DType t, int slot);
  int index(const Affine& map);
  int random(const Affine& map, int slot, int64_t offset);
  int compute(Op op, int a, int b = -1);
  int cast(DType t, int a);
  int where(int c, int a, int b);
  int uniform(DType t, int bits);
  int reduce(Op op, int a, DType t);
  int reduce(Op op, int a) { return reduce(op, a, k.instrs[a].dtype); }
  void store(int value, const Affine& map, bool predicated = false);
  void store(int value) {
    store(value, k.instrs[value].level == Level::Elem ? dense() : outer_dense());
  }
  /// Stores into a buffer that is also read (in place).
  void store_into(int buffer, int value, bool predicated = false);

  KernelSpec k;

 private:
  int add(Instr in);
  int buffer(DType t, const Affine& map, int64_t extra = 0);
  Level level_of(std::initializer_list<int> args) const;
};

}  // namespace ingot::test
