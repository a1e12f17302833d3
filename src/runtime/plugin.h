// Backends in separate libraries, found at run time.
#pragma once
#include <memory>
#include <string>

#include "runtime/backend.h"

namespace ingot {

/// Loads libingot_cuda.so from beside this library ($INGOT_CUDA_PLUGIN names another file).
/// nullptr: `reason` says which part failed and what to do about it.
std::unique_ptr<Backend> load_cuda_plugin(std::string& reason);

}  // namespace ingot
