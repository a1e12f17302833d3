// The kernels written by hand, as text like the generated ones: compiled by NVRTC behind the same
// prelude, launched with the same argument (backend/cuda/emit/text.h), run by the same emulator in
// tests.
#pragma once
#include "backend/cuda/emit/text.h"
#include "codegen/kernel_spec.h"

namespace ingot::cuda {

struct CudaKernel {
  CudaText text;
  CudaLaunch launch;
};

/// Two stages that frame a run (see runner.h). Words: host slots, words per slot, slots - 1, device
/// block, counter of slots used, counter of runs, records, their number - 1. The first clears the
/// status unless scratch is not null.
inline constexpr int kEdgeWords = 8;
CudaText run_edges();

/// Matrix product of any dtypes and strides, one output element per thread, 16 x 16 tiles; bias,
/// epilogue, accumulation.
CudaKernel simple_matmul(const LibrarySpec& spec);
/// A product of float32 that is too small for the library to be quick at; with BiasGrad and
/// ReluGrad, if they are asked for.
bool is_small_product(int64_t m, int64_t n, int64_t k, int64_t batch);
bool is_small_matmul(const LibrarySpec& spec);
CudaKernel small_matmul(const LibrarySpec& spec);
/// GELU of what was stored before (out = gelu(in)), or out times its derivative at in; whole,
/// row-major.
CudaKernel gelu_pass(const LibrarySpec& spec);
/// The sums of the rows of a product's first operand, the second of the call's two results.
CudaKernel row_sums(const LibrarySpec& spec);
/// A product of few rows (four; eight in 16 bits) by weights that lie along the inner dim
/// (decoding): as fast as memory.
bool is_row_matmul(const LibrarySpec& spec);
CudaKernel row_matmul(const LibrarySpec& spec);
/// What the products' texts share: the words of their argument, pointers included, and TYPES, UPA,
/// UPB, DOWN and FINISH (what is done to `sum` for column `col` before it goes to `*at`).
inline constexpr int kMatmulNumbers = 60;
void finish_matmul(const LibrarySpec& spec, std::string& body);
/// Attention of one query per head without a gradient of its own: float32 and 16 bits, any mask
/// that is added. With `clusters` (sm_90 on) several blocks share a head's keys.
bool is_row_attention(const LibrarySpec& spec);
CudaKernel row_attention(const LibrarySpec& spec, bool clusters);
/// The gradient of attention for heads of 64 in 16 bits and up to 256 queries and as many keys,
/// causal or not.
bool is_short_attention_grad(const LibrarySpec& spec);
CudaKernel short_attention_grad(const LibrarySpec& spec);
/// out = 0; out[.., index, ..] += value, the same bits every time. An index that is the same for
/// whole rows (embeddings) is sorted, and rows are summed by segments; else each line is done by
/// one thread in order. A Scatter begins with base and sets, multiplies, or takes the larger or
/// smaller, in the same order. Lines that are long and few are sorted too, each value on its own.
CudaKernel scatter(const LibrarySpec& spec, int multiprocessors);
/// Running values along an axis: by blocks where the axis is dense, by threads where its neighbours
/// are.
CudaKernel scan(const LibrarySpec& spec, int multiprocessors);
bool supports_scan(const LibrarySpec& spec);
/// Places in sorted order: short lines in shared memory, long ones by digits over global memory.
CudaKernel sort(const LibrarySpec& spec);
bool supports_sort(const LibrarySpec& spec);

/// A stable radix sort of (key, place) pairs: RadixLine<K>, radix_count, radix_scan, radix_move;
/// and three stages for each 8 bits of the key, from a text with ENTRY@1 to ENTRY@3 and @0 for the
/// number of the pass.
inline constexpr int64_t kRadixTile = 4096;
const char* radix_text();
void append_radix_passes(std::string& body, std::vector<CudaStage>& stages,
                         std::vector<CudaLaunch::Stage>& grids, const char* pass_text, int passes,
                         unsigned lines, unsigned tiles);
void replace_all(std::string& s, const std::string& from, const std::string& to);
/// For kernels along an axis of operand 1, with operand 0 beside it: words 3 (how many lines there
/// are) and from 28 on three for each dim of a line's number; returns how many dims. line_at() is
/// the text that finds a line by its number, given the words that hold the two offsets and the
/// dims.
int64_t put_lines(const LibrarySpec& spec, std::vector<int64_t>& words);
std::string line_at_text(int offsets, int dims);

/// Conv and its gradients: any one type, any strides, one output element per thread; bias and ReLU.
CudaKernel simple_conv(const LibrarySpec& spec);
/// Windows added up where they overlap, one output element per thread.
CudaKernel fold(const LibrarySpec& spec);
/// The cell of an LSTM's step (or its gradient) for `rows` rows of `width` elements, `lanes` of
/// them by each thread; row_stride: between rows of z (or of the gradient of h). Eight buffers: see
/// kernels/lstm_cell.cpp.
CudaKernel lstm_cell(bool backward, DType type, int64_t rows, int64_t width, int64_t row_stride,
                     int lanes);
/// The same of a GRU, and the gradient of its first state once all steps are done.
CudaKernel gru_cell(bool backward, DType type, int64_t rows, int64_t width, int64_t row_stride,
                    int lanes);
CudaKernel gru_first_state(int64_t count);
/// The same of a plain RNN.
CudaKernel tanh_cell(bool backward, DType type, int64_t rows, int64_t width, int64_t row_stride,
                     int lanes);
CudaKernel relu_cell(bool backward, DType type, int64_t rows, int64_t width, int64_t row_stride,
                     int lanes);

/// Fills in key and entry names: `body` has ENTRY0, ENTRY1, ... for its stages.
CudaText hand_text(const std::string& name, std::string body, std::vector<CudaStage> stages);
/// "float", "unsigned short", ... and the names of the functions that convert to and from the type
/// computed in.
struct TextType {
  std::string memory, compute, up, down;
};
TextType text_type(DType t);

}  // namespace ingot::cuda
