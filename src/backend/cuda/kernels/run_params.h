// What the kernels before and after every run are given (run_prologue.cpp, run_epilogue.cpp).
#pragma once
#include "backend/cuda/kernels/kernel_source.h"

namespace ingot::cuda {

INGOT_KERNEL_PARAMS(RunParams, {
  Address host_slots;  // a ring of parameter blocks in pinned memory
  long long slot_words;
  long long slot_mask;  // slots - 1, a power of two
  Address block;        // device memory that takes a slot's words
  Address slots_used;   // counter
  Address runs;         // counter
  Address records;  // a ring in pinned memory, four words each: run, site and code, value, extent
  long long record_mask;  // records - 1, a power of two
});

inline constexpr unsigned kPrologueThreads = 512, kEpilogueThreads = 32;
extern const char* const kRunPrologue;
extern const char* const kRunEpilogue;

}  // namespace ingot::cuda
