// Library calls of the CPU backend: its kernels, and the table of them that the compiler asks
// (offers.cpp). A prepare function returns nullptr, and says why, where it finds out only while the
// call is made that it does not take it.
#pragma once
#include <memory>
#include <span>

#include "backend/cpu/kernel/kernel.h"
#include "codegen/offer.h"

namespace ingot::cpu {

struct LibraryKernel : OfferRow {
  std::unique_ptr<CpuExecutable> (*prepare)(const LibrarySpec& spec, const char*& why);
};
/// In order of preference.
std::span<const LibraryKernel> library_kernels();

using Prepared = std::unique_ptr<CpuExecutable>;

// Products
const char* few_rows_refuses(const LibrarySpec& spec);
Prepared prepare_few_rows(const LibrarySpec& spec, const char*& why);
const char* matmul_refuses(const LibrarySpec& spec);
Prepared prepare_matmul(const LibrarySpec& spec, const char*& why);
const char* int_matmul_refuses(const LibrarySpec& spec);
Prepared prepare_int_matmul(const LibrarySpec& spec, const char*& why);

// Attention; of one query a head over a cache and one key more
const char* attention_refuses(const LibrarySpec& spec);
Prepared prepare_attention(const LibrarySpec& spec, const char*& why);
const char* newest_refuses(const LibrarySpec& spec);
Prepared prepare_newest(const LibrarySpec& spec, const char*& why);

// Recurrent layers
const char* recurrent_refuses(const LibrarySpec& spec);
bool recurrent_in_place(const LibrarySpec& spec, size_t operand, size_t result);
Prepared prepare_recurrent(const LibrarySpec& spec, const char*& why);

// Conv, ConvGradInput, ConvGradWeight: each channel by itself; of few input channels, forward and
// for the weight's gradient; with 3 x 3 windows by fewer multiplications; by oneDNN; any
const char* depthwise_refuses(const LibrarySpec& spec);
Prepared prepare_depthwise(const LibrarySpec& spec, const char*& why);
const char* conv_few_channels_refuses(const LibrarySpec& spec);
Prepared prepare_conv_few_channels(const LibrarySpec& spec, const char*& why);
/// INGOT_WINOGRAD=gradients or all. Not by default: sums that round differently from PyTorch's put
/// one ReLU among millions on the other side of 0, which changes a curve by more than another
/// number of threads does; and an infinity turns its neighbours into NaN.
bool wants_winograd(Op op);
const char* winograd_refuses(const LibrarySpec& spec);
Prepared prepare_winograd(const LibrarySpec& spec, const char*& why);
const char* dnnl_conv_refuses(const LibrarySpec& spec);
Prepared prepare_dnnl_conv(const LibrarySpec& spec, const char*& why);
Prepared prepare_conv(const LibrarySpec& spec, const char*& why);
Prepared prepare_fold(const LibrarySpec& spec, const char*& why);

// Indexing, scans, factorisations, copies between devices
Prepared prepare_scatter(const LibrarySpec& spec, const char*& why);
Prepared prepare_scan(const LibrarySpec& spec, const char*& why);
Prepared prepare_sort(const LibrarySpec& spec, const char*& why);
Prepared prepare_linalg(const LibrarySpec& spec, const char*& why);
Prepared prepare_copy(const LibrarySpec& spec, const char*& why);

// Generated kernels of special forms; nullptr for others

/// One that reduces small windows.
std::unique_ptr<CpuExecutable> prepare_pool(std::span<const KernelSpec> parts);
/// The same for the maximum over windows in dense rows, of values computed on the way.
std::unique_ptr<CpuExecutable> prepare_max_pool(const KernelSpec& spec);
/// One that updates one index along an axis.
std::unique_ptr<CpuExecutable> prepare_single_index_update(std::span<const KernelSpec> parts);

}  // namespace ingot::cpu
