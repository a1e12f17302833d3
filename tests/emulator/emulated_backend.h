// A Backend that runs generated kernels as CUDA text in the emulator, on host memory; library calls
// go to the CPU backend. A test program that links use_emulator.cpp finds it as the device "cuda",
// so that whole op tests run through the executor, the emitter and the emulated GPU.
#pragma once
#include <memory>

#include "runtime/backend.h"

namespace ingot::test {

/// collect: nothing is executed, the texts are only added to the emulator, to be compiled in one
/// go.
std::unique_ptr<Backend> make_emulated_backend(bool collect = false);

}  // namespace ingot::test
