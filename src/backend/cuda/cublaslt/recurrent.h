// The steps of a recurrent layer: for each one product and one cell, enqueued one after the other.
#pragma once
#include <memory>

#include "backend/cuda/runtime/executable.h"

namespace ingot::cuda {

class Gpu;

/// float32 and the 16-bit types, of sizes that 32-bit positions reach.
const char* recurrent_refuses(const LibrarySpec& spec);
std::unique_ptr<Executable> prepare_recurrent(Gpu& gpu, const LibrarySpec& spec, const char*& why);

}  // namespace ingot::cuda
