// Before every run: copies the next slot of parameters from pinned memory to the device and clears
// the status, unless scratch is not null: then the run continues the one before it.
//
// Launch: one block of 512 threads. Bound by latency: a few hundred words over PCIe. As a kernel
// rather than a copy it can be part of a CUDA graph whose slot changes from replay to replay.
#include "backend/cuda/kernels/run_params.h"

namespace ingot::cuda {

const char* const kRunPrologue = R"cuda(
IG_FN void run_prologue(const Argument<RunParams> p) {
  ig_wait();
  volatile ig_u64* counter = (volatile ig_u64*)p.slots_used;
  const ig_u64 used = *counter;
  const volatile long long* from = (const volatile long long*)p.host_slots + (used & (ig_u64)p.slot_mask) * (ig_u64)p.slot_words;
  long long* to = (long long*)p.block;
  for (long long i = threadIdx.x; i < p.slot_words; i += 512) to[i] = from[i];
  __syncthreads();
  if (threadIdx.x == 0) *counter = used + 1;
  if (threadIdx.x == 0 && !p.scratch) {
    IgStatus* s = p.status;
    s->code = 0; s->site = -1; s->value = 0; s->extent = 0;
  }
}
)cuda";

CudaText run_kernels() {
  return make_kernel("run", std::string(kRunPrologue) + kRunEpilogue,
                     {{"run_prologue", 1, kPrologueThreads, true},
                      {"run_epilogue", 1, kEpilogueThreads, false}},
                     RunParams{})
      .text;
}

}  // namespace ingot::cuda
