// After every run: writes the run's number, and its status if there is an error, to a record in
// pinned memory that the host polls.
//
// Launch: one block of one warp, of which one thread works. Bound by the latency of a few writes
// over PCIe; a run without an error writes a single word.
#include "backend/cuda/kernels/run_params.h"

namespace ingot::cuda {

const char* const kRunEpilogue = R"cuda(
#ifdef IG_EMULATED
#define IG_SYSTEM_FENCE
#else
#define IG_SYSTEM_FENCE __threadfence_system()
#endif
IG_FN void run_epilogue(const Argument<RunParams> p) {
  ig_wait();
  if (threadIdx.x != 0) return;
  volatile ig_u64* runs = (volatile ig_u64*)p.runs;
  const ig_u64 run = *runs;
  volatile long long* record = (volatile long long*)p.records + (run & (ig_u64)p.record_mask) * 4;
  const volatile IgStatus* s = p.status;
  if (s->code) {  // else the rest of the record is 0, and nothing has to arrive before its number
    record[1] = (long long)(((ig_u64)(unsigned)s->site << 32) | (unsigned)s->code);
    record[2] = s->value;
    record[3] = s->extent;
    IG_SYSTEM_FENCE;
  }
  record[0] = (long long)(run + 1);
  *runs = run + 1;
}
)cuda";

}  // namespace ingot::cuda
