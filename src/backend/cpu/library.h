// Library calls of the CPU backend.
#pragma once
#include <memory>

#include "backend/cpu/kernel/kernel.h"

namespace ingot::cpu {

bool supports_matmul(const LibrarySpec& spec);
std::unique_ptr<CpuExecutable> prepare_matmul(const LibrarySpec& spec);
/// A float32 matmul with few rows or columns; nullptr when it is not one.
std::unique_ptr<CpuExecutable> prepare_few_rows(const LibrarySpec& spec);
/// Attention and AttentionGrad of float32, of lengths at which it is faster.
bool supports_attention(const LibrarySpec& spec);
std::unique_ptr<CpuExecutable> prepare_attention(const LibrarySpec& spec);
/// Attention of one query per head over a cache and one more key.
bool supports_newest(const LibrarySpec& spec);
std::unique_ptr<CpuExecutable> prepare_newest(const LibrarySpec& spec);
/// Lstm and LstmGrad of float32, of lengths at which it is faster.
bool supports_lstm(const LibrarySpec& spec);
bool lstm_in_place(const LibrarySpec& spec, size_t operand, size_t result);
std::unique_ptr<CpuExecutable> prepare_lstm(const LibrarySpec& spec);
/// A generated kernel that reduces small windows; nullptr when it is of another form.
std::unique_ptr<CpuExecutable> prepare_pool(std::span<const KernelSpec> parts);
/// The same for the maximum over windows in dense rows, of values computed on the way; nullptr for
/// others.
std::unique_ptr<CpuExecutable> prepare_max_pool(const KernelSpec& spec);
/// A generated kernel that updates one index along an axis; nullptr for others.
std::unique_ptr<CpuExecutable> prepare_single_index_update(std::span<const KernelSpec> parts);
/// Conv, ConvGradInput, ConvGradWeight.
std::unique_ptr<CpuExecutable> prepare_conv(const LibrarySpec& spec);
/// Depthwise convolutions in float32 and dense rows; nullptr for others.
std::unique_ptr<CpuExecutable> prepare_depthwise(const LibrarySpec& spec);
/// Convolutions with few input channels in float32, forward and weight gradient; nullptr for
/// others.
std::unique_ptr<CpuExecutable> prepare_few_channel_conv(const LibrarySpec& spec);
/// The same with 3 x 3 windows in float32 by fewer multiplications, where that is
/// faster; nullptr elsewhere.
std::unique_ptr<CpuExecutable> prepare_winograd(const LibrarySpec& spec);
/// INGOT_WINOGRAD=gradients or all. Not by default: sums that round differently from PyTorch's put
/// one ReLU among millions on the other side of 0, which changes a curve by more than another
/// number of threads does; and an infinity turns its neighbours into NaN.
bool wants_winograd(Op op);
/// The same by oneDNN; nullptr where it is not there or has nothing fast.
std::unique_ptr<CpuExecutable> prepare_dnnl_conv(const LibrarySpec& spec);
std::unique_ptr<CpuExecutable> prepare_fold(const LibrarySpec& spec);
std::unique_ptr<CpuExecutable> prepare_scatter(const LibrarySpec& spec);
std::unique_ptr<CpuExecutable> prepare_scan(const LibrarySpec& spec);
std::unique_ptr<CpuExecutable> prepare_sort(const LibrarySpec& spec);
/// Factorisations (LinalgAttrs).
std::unique_ptr<CpuExecutable> prepare_linalg(const LibrarySpec& spec);
std::unique_ptr<CpuExecutable> prepare_copy(const LibrarySpec& spec);

}  // namespace ingot::cpu
