// The Backend of CUDA devices, and the plug-in's door: ingot_cuda_backend().
#include <algorithm>
#include <cstdio>
#include <memory>
#include <vector>

#include "backend/cuda/cublaslt/blaslt.h"
#include "backend/cuda/emit/nvrtc.h"
#include "backend/cuda/offers.h"
#include "backend/cuda/runtime/gpu.h"
#include "base/env.h"
#include "ingot/error.h"
#include "ingot/version.h"
#include "runtime/backend.h"
#ifdef INGOT_HAVE_CUDNN
#include "backend/cuda/cudnn/dnn.h"
#endif

namespace ingot::cuda {
namespace {

/// What products reach of the arithmetic that the clock and the number of units promise (measured
/// on an H200).
constexpr double kReached = 0.735, kCopyReached = 0.871;

DeviceRates rates_of(const Gpu& g) {
  DeviceRates r;
  r.name = g.name;
  r.memory_gbs = 2.0 * g.memory_clock_khz * 1e3 * g.bus_bits / 8 * kCopyReached / 1e9;
  double cycles = g.clock_khz * 1e3 * g.multiprocessors;
  bool ampere = g.major == 8;
  r.flops_16 = cycles * (ampere ? (g.minor == 0 ? 2048 : 1024) : 4096) * kReached;
  r.flops_f32 = cycles * 256 * kReached;
  r.flops_f64 = cycles * (g.major == 9 ? 256 : g.major == 8 && g.minor == 0 ? 128 : 4) * kReached;
  r.scalar_flops = cycles * 256 * 0.5;
  r.launch_us = 2.0;
  r.threads = g.multiprocessors * 2048;
  return r;
}

}  // namespace

std::unique_ptr<Executable> compile_kernel(Gpu& g, std::span<const KernelSpec> parts) {
  CudaTarget target{g.multiprocessors, g.shared_per_block, g.cache_bytes};
  CudaText text = emit_cuda(parts, target);
  if (env::debug("text"))
    std::fprintf(stderr, "[ingot text] %s: %s\n%s\n", parts[0].label.c_str(), text.schedule.c_str(),
                 text.body.c_str());
  auto made = std::make_unique<KernelExecutable>(
      text, text.launch(parts), static_cast<int>(parts.size()),
      static_cast<int>(parts[0].buffers.size()), g.modules->get(text));
  made->touches = touches_of(parts);
  return made;
}

namespace {

class CudaBackend final : public Backend {
 public:
  explicit CudaBackend(int count)
      : gpus_(static_cast<size_t>(count)), once_(new std::once_flag[static_cast<size_t>(count)]) {}

  int device_count() override { return static_cast<int>(gpus_.size()); }
  DeviceRates rates(int device) override { return rates_of(gpu(device)); }
  size_t free_memory(int device) override {
    gpu(device).make_current();
    size_t free = 0, total = 0;
    check(driver().mem_get_info(&free, &total), "querying free memory");
    return free;
  }

  size_t total_memory(int device) override { return gpu(device).memory_bytes; }
  std::string chip(int device) override { return gpu(device).name; }
  Facts facts(int device) override {
    Gpu& g = gpu(device);
    auto version = [](auto v) { return std::to_string(v); };
    Facts f{{"compute capability", version(g.major) + "." + version(g.minor)},
            {"multiprocessors", version(g.multiprocessors)},
            {"driver", "CUDA " + version(driver().version / 1000) + "." +
                           version(driver().version % 1000 / 10)}};
    if (const Nvrtc* n = Nvrtc::get())
      f.emplace_back("NVRTC",
                     version(n->major()) + "." + version(n->minor()) + " (" + n->path() + ")");
    g.make_current();
    g.blas();
    f.emplace_back("cuBLASLt", version(blaslt().version()) + " (" + blaslt().path + ")");
#ifdef INGOT_HAVE_CUDNN
    Dnn* d = g.dnn();
    f.emplace_back("cuDNN", d ? version(d->version / 10000) + "." + version(d->version / 100 % 100)
                              : "none: " + Dnn::missing());
#else
    f.emplace_back("cuDNN", "none: this plug-in was built without its headers");
#endif
    return f;
  }

  void* allocate(int device, size_t bytes) override { return gpu(device).allocate(bytes); }
  void deallocate(int device, void* p, size_t bytes) override { gpu(device).deallocate(p, bytes); }
  ArenaBlock resize_arena(int device, ArenaBlock now, size_t bytes) override {
    Gpu& g = gpu(device);
    return g.maps_arena() ? g.resize_arena(now, bytes) : Backend::resize_arena(device, now, bytes);
  }
  void copy_from_host(int device, void* dst, const void* src, size_t bytes) override {
    gpu(device).copy_from_host(dst, src, bytes);
  }
  void copy_to_host(int device, void* dst, const void* src, size_t bytes) override {
    gpu(device).copy_to_host(dst, src, bytes);
  }
  void copy_on_device(int device, void* dst, const void* src, size_t bytes) override {
    gpu(device).copy_on_device(dst, src, bytes);
  }
  bool host_visible() const override { return false; }
  Offer best_offer(const LibrarySpec& spec) override {
    return ingot::best_offer(library_kernels(), spec);
  }
  std::vector<Refusal> refusals(const LibrarySpec& spec) override {
    return ingot::refusals(library_kernels(), spec);
  }

  std::unique_ptr<Executable> compile(int device, std::span<const KernelSpec> parts) override {
    return compile_kernel(gpu(device), parts);
  }

  std::unique_ptr<Executable> prepare(int device, const LibrarySpec& spec) override {
    std::unique_ptr<Executable> made = prepare_library(gpu(device), spec);
    if (made) static_cast<CudaExecutable&>(*made).touches = touches_of(spec);
    return made;
  }

  std::unique_ptr<Executable> chain(std::unique_ptr<Executable> first,
                                    std::unique_ptr<Executable> second, int buffers) override {
    return std::make_unique<ChainExecutable>(std::move(first), std::move(second), buffers);
  }

  void launch(int device, Executable& exe, void* const* buffers, void* scratch,
              const RunArgs& args) override {
    auto& e = static_cast<CudaExecutable&>(exe);
    LaunchItem item{&e, buffers, 0, scratch};
    uint64_t ticket = run(device, 0, {&item, 1}, args);
    RunStatus status;
    if (poll(device, ticket, true, status) && status.code && args.status) *args.status = status;
  }

  uint64_t run(int device, uint64_t plan, std::span<const LaunchItem> items,
               const RunArgs& args) override {
    Gpu& g = gpu(device);
    g.make_current();
    std::lock_guard lock(g.mutex);
    return g.runner->run(plan, items, args);
  }

  void forget(int device, uint64_t plan) override {
    Gpu& g = gpu(device);
    g.make_current();
    std::lock_guard lock(g.mutex);
    g.runner->forget(plan);
  }

  bool run_timed(int device, std::span<const LaunchItem> items, const RunArgs& args,
                 std::vector<double>& microseconds) override {
    Gpu& g = gpu(device);
    g.make_current();
    std::lock_guard lock(g.mutex);
    uint64_t ticket = g.runner->run_timed(items, args, microseconds);
    RunStatus status;
    if (g.runner->poll(ticket, true, status) && status.code && args.status) *args.status = status;
    return true;
  }

  bool poll(int device, uint64_t ticket, bool wait, RunStatus& status) override {
    Gpu& g = gpu(device);
    g.make_current();
    std::lock_guard lock(g.mutex);
    return g.runner->poll(ticket, wait, status);
  }

  std::string tuning_file(int device) override { return gpu(device).blas().tuning.path(); }
  void synchronize(int device) override { gpu(device).synchronize(); }

 private:
  /// A context is made on a GPU that is used, not on every one there is.
  Gpu& gpu(int device) {
    auto i = static_cast<size_t>(device);
    std::call_once(once_[i], [&] { gpus_[i] = std::make_unique<Gpu>(device); });
    return *gpus_[i];
  }
  std::vector<std::unique_ptr<Gpu>> gpus_;
  std::unique_ptr<std::once_flag[]> once_;
};

/// Empty, or what is missing.
std::string load_all(int& count) {
  if (std::string why = driver().load(); !why.empty()) return why;
  if (CUresult r = driver().device_get_count(&count))
    return "the NVIDIA driver cannot list its GPUs: " + describe(r);
  if (count == 0)
    return "the NVIDIA driver is loaded but shows no GPU. See nvidia-smi; CUDA_VISIBLE_DEVICES may "
           "hide them";
  for (int i = 0; i < count; ++i) {
    CUdevice d;
    int major = 0;
    if (driver().device_get(&d, i) == CUDA_SUCCESS)
      driver().device_get_attribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, d);
    if (major < 8)
      return "GPU " + std::to_string(i) +
             " is too old: compute capability 8.0 (A100, RTX 30) or newer is needed; hide it with "
             "CUDA_VISIBLE_DEVICES";
  }
  Nvrtc::set_newest(driver().version / 1000);
  const Nvrtc* nvrtc = Nvrtc::get();
  if (!nvrtc) return Nvrtc::missing();
  if (nvrtc->major() * 1000 > driver().version)
    return "NVRTC " + std::to_string(nvrtc->major()) + "." + std::to_string(nvrtc->minor()) + " (" +
           nvrtc->path() + ") is newer than the driver, which supports CUDA " +
           std::to_string(driver().version / 1000) + "." +
           std::to_string(driver().version % 1000 / 10) +
           ". `tools/setup.sh --gpu` or `pip install nvidia-cuda-nvrtc-cu12`, or install a newer "
           "driver";
  return blaslt().load();
}

}  // namespace
}  // namespace ingot::cuda

extern "C" {

/// Which Ingot this plug-in belongs to.
const char* ingot_cuda_version() { return INGOT_VERSION_STRING; }

/// The backend, owned by the caller, or nullptr and the reason.
ingot::Backend* ingot_cuda_backend(std::string* reason) {
  try {
    int count = 0;
    *reason = ingot::cuda::load_all(count);
    if (!reason->empty()) return nullptr;
    return new ingot::cuda::CudaBackend(count);
  } catch (const std::exception& e) {
    *reason = e.what();
    return nullptr;
  }
}
}
