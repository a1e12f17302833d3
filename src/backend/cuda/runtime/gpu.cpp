// See gpu.h.
#include "backend/cuda/runtime/gpu.h"

#include <memory>

#include "backend/cuda/cublaslt/blaslt.h"
#include "backend/cuda/cudnn/dnn.h"

namespace ingot::cuda {

int Gpu::attribute(CUdevice_attribute a) const {
  int v = 0;
  check(driver().device_get_attribute(&v, a, device_), "querying a device attribute");
  return v;
}

Gpu::Gpu(int n) : ordinal(n) {
  Driver& d = driver();
  check(d.device_get(&device_, n), "opening the GPU");
  char text[256] = {};
  check(d.device_get_name(text, sizeof text - 1, device_), "querying the GPU's name");
  name = text;
  check(d.device_total_mem(&memory_bytes, device_), "querying the GPU's memory");
  major = attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
  minor = attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
  multiprocessors = attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
  clock_khz = attribute(CU_DEVICE_ATTRIBUTE_CLOCK_RATE);
  memory_clock_khz = attribute(CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE);
  bus_bits = attribute(CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH);
  cache_bytes = static_cast<size_t>(attribute(CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE));
  shared_per_block =
      static_cast<size_t>(attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN));
  architecture = "sm_" + std::to_string(major) + std::to_string(minor);

  check(d.primary_ctx_retain(&context_, device_), "creating a context on the GPU");
  make_current();
  check(d.stream_create(&compute, CU_STREAM_NON_BLOCKING), "making a stream");
  check(d.stream_create(&copy, CU_STREAM_NON_BLOCKING), "making a stream");
  for (CUstream& s : captured)
    check(d.stream_create(&s, CU_STREAM_NON_BLOCKING), "making a stream");
  check(d.event_create(&copied_, CU_EVENT_DISABLE_TIMING), "making an event");
  modules = std::make_unique<ModuleCache>(architecture);
  runner = std::make_unique<Runner>(*this);
}

Gpu::~Gpu() = default;  // the process ends: the driver takes its memory back

void Gpu::make_current() const {
  static thread_local CUcontext mine = nullptr;
  CUcontext now = nullptr;
  // Another library of the process may have changed it.
  if (mine == context_ && driver().ctx_get_current(&now) == CUDA_SUCCESS && now == context_) return;
  check(driver().ctx_set_current(context_), "making the GPU current");
  mine = context_;
}

void Gpu::join_copies() {
  if (!copies_pending_) return;
  check(driver().stream_wait_event(compute, copied_, 0), "ordering the streams");
  copies_pending_ = false;
}

void Gpu::synchronize() {
  make_current();
  std::lock_guard lock(mutex);
  check(driver().stream_synchronize(copy), "waiting for copies");
  check(driver().stream_synchronize(compute), "waiting for the GPU");
  copies_pending_ = false;
}

void* Gpu::allocate(size_t bytes) {
  make_current();
  std::lock_guard lock(memory_mutex);
  return memory.allocate(bytes);
}

void Gpu::deallocate(void* p, size_t bytes) {
  make_current();
  std::lock_guard lock(memory_mutex);
  memory.deallocate(p, bytes, started_run + (loose_work ? 1 : 0));
}

bool Gpu::maps_arena() {
  make_current();
  std::lock_guard lock(memory_mutex);
  return arena.reserve(device_, memory_bytes);
}

ArenaBlock Gpu::resize_arena(ArenaBlock now, size_t bytes) {
  if (bytes == 0) {
    synchronize();
    std::lock_guard lock(memory_mutex);
    arena.clear();
    return {};
  }
  make_current();
  std::lock_guard lock(memory_mutex);
  // As for any large block: what is held at the peak is what is used there.
  if (bytes > arena.mapped() && bytes >= Memory::kLarge) memory.trim(Memory::kLarge);
  if (!arena.grow(bytes)) {
    memory.trim();
    if (!arena.grow(bytes)) return now;
  }
  return {arena.data(), bytes};
}

void Gpu::copy_from_host(void* dst, const void* src, size_t bytes) {
  make_current();
  std::lock_guard lock(mutex);
  bool quiet;
  {
    uint64_t finished = runner->finished();
    std::lock_guard memory_lock(memory_mutex);
    quiet = memory.quiet(dst, finished);
  }
  if (!quiet) {
    join_copies();
    loose_work = true;
    staging.to_device(compute, dst, src, bytes);
    return;
  }
  staging.to_device(copy, dst, src, bytes);
  check(driver().event_record(copied_, copy), "recording an event");
  copies_pending_ = true;
}

void Gpu::copy_to_host(void* dst, const void* src, size_t bytes) {
  make_current();
  std::lock_guard lock(mutex);
  join_copies();
  staging.to_host(compute, dst, src, bytes);
}

void Gpu::copy_on_device(void* dst, const void* src, size_t bytes) {
  make_current();
  std::lock_guard lock(mutex);
  join_copies();
  loose_work = true;
  check(driver().memcpy_dtod_async(reinterpret_cast<CUdeviceptr>(dst),
                                   reinterpret_cast<CUdeviceptr>(src), bytes, compute),
        "copying on the GPU");
}

BlasLt& Gpu::blas() {
  std::call_once(blas_once_, [this] { blas_ = std::make_unique<BlasLt>(*this); });
  return *blas_;
}

Dnn* Gpu::dnn() {
#ifdef INGOT_HAVE_CUDNN
  std::call_once(dnn_once_, [this] { dnn_ = Dnn::open(); });
#endif
  return dnn_.get();
}

}  // namespace ingot::cuda
