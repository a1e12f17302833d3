// The kernels that the generated CUDA text is tested on: by hand, one for each thing the emitter
// does, and by chance.
#pragma once
#include <string>
#include <vector>

#include "backend/cuda/emit/text.h"

namespace ingot::test {

struct TextCase {
  std::string name;
  std::vector<KernelSpec> parts;
  bool bad_index = false;  // some index is out of range: status and fill are compared
  CudaTarget target = {};
};

std::vector<TextCase> map_cases();
std::vector<TextCase> reduce_cases();
std::vector<TextCase> row_cases();
/// Sweeps over rows (named so) and windows that one thread walks.
std::vector<TextCase> column_cases();
void add_column_bench_cases(std::vector<TextCase>& cases);
/// At the sizes of real models, to be timed on a GPU.
std::vector<TextCase> bench_cases();
std::vector<TextCase> random_cases(int count, unsigned seed);

}  // namespace ingot::test
