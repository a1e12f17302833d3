// The CUDA backend's kernels for library calls, hand-written and of libraries, in one table.
#pragma once
#include <functional>
#include <memory>
#include <span>

#include "backend/cuda/runtime/executable.h"
#include "codegen/offer.h"

namespace ingot::cuda {

class Gpu;

struct LibraryKernel : OfferRow {
  /// nullptr, and why, where it finds out only now that it does not take the call.
  std::unique_ptr<Executable> (*prepare)(Gpu&, const LibrarySpec&, const char*& why);
};
/// In order of preference.
std::span<const LibraryKernel> library_kernels();

/// A generated kernel.
std::unique_ptr<Executable> compile_kernel(Gpu& gpu, std::span<const KernelSpec> parts);

/// The first kernel of the table that takes the call; nullptr when there is none.
std::unique_ptr<Executable> prepare_library(Gpu& gpu, const LibrarySpec& spec);

}  // namespace ingot::cuda
