// Random library calls with any strides, memory for them, and what they must give, computed naively.
#pragma once
#include <random>
#include <string>
#include <vector>

#include "codegen/kernel_spec.h"

namespace ingot::test {

/// Host memory of a call's operands, filled at random.
struct CallMemory {
  CallMemory(const LibrarySpec& spec, uint32_t seed, int64_t index_extent = 0);
  std::vector<std::vector<uint64_t>> blocks;
  std::vector<size_t> bytes;  // per operand
  void* at(size_t operand) { return blocks[operand].data(); }
};

LibrarySpec random_matmul(std::mt19937& gen, bool library_types);
LibrarySpec random_scatter(std::mt19937& gen, bool rows);
/// Runs the call on this memory.
void reference(const LibrarySpec& spec, CallMemory& m);
/// Empty, or the first difference in operand 0.
std::string difference(const LibrarySpec& spec, CallMemory& got, CallMemory& want);

}  // namespace ingot::test
