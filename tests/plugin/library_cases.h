// Random library calls with any strides, memory for them, and what they must give, computed
// naively.
#pragma once
#include <random>
#include <string>
#include <vector>

#include "runtime/backend.h"

namespace ingot::test {

/// Host memory of a call's operands, filled at random.
struct CallMemory {
  CallMemory(const LibrarySpec& spec, uint32_t seed, int64_t index_extent = 0);
  std::vector<std::vector<uint64_t>> blocks;
  std::vector<size_t> bytes;  // per operand
  void* at(size_t operand) { return blocks[operand].data(); }
};

LibrarySpec random_matmul(std::mt19937& gen, bool library_types);
/// A product of 16-bit floats with GELU beside it, or times GELU's derivative.
LibrarySpec random_gelu_matmul(std::mt19937& gen);
/// A product with a transposed first operand, and the sums of that one's rows.
LibrarySpec random_bias_gradient(std::mt19937& gen);
LibrarySpec random_relu_gradient(std::mt19937& gen);
/// A product of few rows by weights along the inner dim, most of which row_matmul() takes.
LibrarySpec random_row_matmul(std::mt19937& gen);
/// Attention of one query per head, and what it must give (and its lse, where it is written).
LibrarySpec random_row_attention(std::mt19937& gen);
void attention_reference(const LibrarySpec& spec, CallMemory& m);
/// The gradient of attention over short sequences; short_attention() fills in the forward call's
/// results, and its reference writes the gradients in float64's arithmetic.
LibrarySpec random_short_attention(std::mt19937& gen, int64_t longest);
void short_attention(const LibrarySpec& spec, CallMemory& m);
void short_attention_reference(const LibrarySpec& spec, CallMemory& m);
/// How far result `i` is from what it should be, as a part of its norm.
double distance(const LibrarySpec& spec, size_t i, CallMemory& got, CallMemory& want);
LibrarySpec random_scatter(std::mt19937& gen, bool rows);
/// A Scatter of any mode: by rows, by lines, or with `singles` by few long lines.
LibrarySpec random_write(std::mt19937& gen, bool rows, bool singles);
/// Scans of every kind and sorts, with lines of up to `longest` elements.
LibrarySpec random_scan(std::mt19937& gen, int64_t longest);
LibrarySpec random_sort(std::mt19937& gen, int64_t longest);
/// Size of the axis that the call's index (the operand before the last) counts in; 0 when it has
/// none.
int64_t index_extent(const LibrarySpec& spec);
/// Runs the call on this memory.
void reference(const LibrarySpec& spec, CallMemory& m);
/// Runs it on a device of the backend, on a copy of this memory; what it writes comes back.
RunStatus run_call(Backend& backend, const LibrarySpec& spec, CallMemory& m);
/// Empty, or the first difference in an operand that is written.
std::string difference(const LibrarySpec& spec, CallMemory& got, CallMemory& want);

}  // namespace ingot::test
