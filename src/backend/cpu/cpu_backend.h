// The entry point of the CPU backend: everything else in this room is behind the Backend interface.
#pragma once
#include <memory>

#include "runtime/backend.h"

namespace ingot {

std::unique_ptr<Backend> make_cpu_backend();

}  // namespace ingot
