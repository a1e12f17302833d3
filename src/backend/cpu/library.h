// Library calls of the CPU backend.
#pragma once
#include "backend/cpu/kernel.h"

namespace ingot::cpu {

bool supports_matmul(const LibrarySpec& spec);
std::unique_ptr<CpuExecutable> prepare_matmul(const LibrarySpec& spec);
std::unique_ptr<CpuExecutable> prepare_scatter_add(const LibrarySpec& spec);
std::unique_ptr<CpuExecutable> prepare_copy(const LibrarySpec& spec);

}  // namespace ingot::cpu
