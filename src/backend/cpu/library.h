// Library calls of the CPU backend.
#pragma once
#include <memory>

#include "backend/cpu/kernel/kernel.h"

namespace ingot::cpu {

bool supports_matmul(const LibrarySpec& spec);
std::unique_ptr<CpuExecutable> prepare_matmul(const LibrarySpec& spec);
/// A float32 matmul with few rows or columns; nullptr when it is not one.
std::unique_ptr<CpuExecutable> prepare_few_rows(const LibrarySpec& spec);
/// Attention and AttentionGrad of float32, of lengths at which it pays.
bool supports_attention(const LibrarySpec& spec);
std::unique_ptr<CpuExecutable> prepare_attention(const LibrarySpec& spec);
/// Attention of one query a head over a cache and one key more.
bool supports_newest(const LibrarySpec& spec);
std::unique_ptr<CpuExecutable> prepare_newest(const LibrarySpec& spec);
/// Lstm and LstmGrad of float32, of lengths at which it pays.
bool supports_lstm(const LibrarySpec& spec);
bool lstm_in_place(const LibrarySpec& spec, size_t operand, size_t result);
std::unique_ptr<CpuExecutable> prepare_lstm(const LibrarySpec& spec);
/// A generated kernel that reduces small windows; nullptr when it is of another form.
std::unique_ptr<CpuExecutable> prepare_window_reduce(std::span<const KernelSpec> parts);
/// The same for the maximum over windows in dense rows, of values computed on the way; nullptr for
/// others.
std::unique_ptr<CpuExecutable> prepare_window_max(const KernelSpec& spec);
/// A generated kernel that changes one place along an axis; nullptr for others.
std::unique_ptr<CpuExecutable> prepare_pinned(std::span<const KernelSpec> parts);
/// Conv, ConvGradInput, ConvGradWeight.
std::unique_ptr<CpuExecutable> prepare_conv(const LibrarySpec& spec);
/// The same, each channel by itself, in float32 and dense rows; nullptr for others.
std::unique_ptr<CpuExecutable> prepare_depthwise(const LibrarySpec& spec);
/// The same of pictures in float32, forward and for the weight's gradient; nullptr for others.
std::unique_ptr<CpuExecutable> prepare_picture_conv(const LibrarySpec& spec);
/// The same with 3 x 3 windows in float32 by fewer multiplications, where that pays; nullptr
/// elsewhere.
std::unique_ptr<CpuExecutable> prepare_winograd(const LibrarySpec& spec);
/// INGOT_WINOGRAD=gradients or all. Not by default: sums that round otherwise than PyTorch's put
/// one ReLU among millions on the other side of 0, which moves a curve by more than another number
/// of threads does; and an infinity makes NaN of its neighbours.
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
