// The Backend of CPU devices. cpu:0, cpu:1, ... run the same code on the same threads and differ in
// their memory.
#include "backend/cpu/cpu_backend.h"
#include "ingot/devices.h"
#include "ingot/error.h"

#include <array>
#include <cstring>
#include <fstream>
#include <memory>
#include <new>
#include <stdexcept>
#include <thread>

#include "backend/cpu/library.h"
#include "backend/cpu/support/dispatch.h"
#include "backend/cpu/support/memory.h"
#include "backend/cpu/support/threads.h"

namespace ingot {

namespace {

/// Kernels compute in the host's memory: when it is exhausted, the device is out of memory.
template <class Fn>
void or_out_of_memory(Fn fn) {
  auto fail = [] {
    throw OutOfMemory("the system has no memory for the threads' scratch space", 0, 0, 0);
  };
  try {
    fn();
  } catch (const std::bad_alloc&) {
    fail();
  } catch (const std::length_error&) {
    fail();
  }
}

class CpuBackend final : public Backend {
 public:
  int device_count() override { return static_cast<int>(pools_.size()); }

  /// Conservative rates of a server core; they only scale predictions.
  DeviceRates rates(int) override {
    DeviceRates r;
    const int t = get_num_threads();
    r.name = "cpu (" + std::to_string(t) + (t == 1 ? " thread)" : " threads)");
    r.memory_gbs = 25;
    r.flops_f32 = 95e9 * t;
    r.flops_16 = 80e9 * t;
    r.flops_f64 = 45e9 * t;
    r.scalar_flops = 20e9 * t;
    r.launch_us = 0.3;
    r.threads = t;
    return r;
  }
  size_t free_memory(int) override { return host_memory().available; }
  size_t total_memory(int) override { return host_memory().total; }
  std::string chip(int) override {
    std::ifstream in("/proc/cpuinfo");
    for (std::string line; std::getline(in, line);)
      if (line.starts_with("model name") && line.find(": ") != std::string::npos)
        return line.substr(line.find(": ") + 2);
    return "CPU";
  }
  Facts facts(int) override {
    static const char* const names[] = {"baseline", "AVX2", "AVX-512"};
    return {{"cores", std::to_string(std::thread::hardware_concurrency())},
            {"threads used", std::to_string(get_num_threads())},
            {"SIMD", names[static_cast<int>(cpu::simd_level())]}};
  }

  void* allocate(int device, size_t bytes) override {
    return pools_[static_cast<size_t>(device)].allocate(bytes);
  }
  void deallocate(int device, void* p, size_t bytes) override {
    pools_[static_cast<size_t>(device)].deallocate(p, bytes);
  }
  void copy_from_host(int, void* dst, const void* src, size_t bytes) override {
    copy(dst, src, bytes);
  }
  void copy_to_host(int, void* dst, const void* src, size_t bytes) override {
    copy(dst, src, bytes);
  }
  void copy_on_device(int, void* dst, const void* src, size_t bytes) override {
    copy(dst, src, bytes);
  }
  bool host_visible() const override { return true; }

  Offer best_offer(const LibrarySpec& spec) override {
    return ingot::best_offer(cpu::library_kernels(), spec);
  }
  std::vector<Refusal> refusals(const LibrarySpec& spec) override {
    return ingot::refusals(cpu::library_kernels(), spec);
  }
  std::unique_ptr<Executable> compile(int, std::span<const KernelSpec> parts) override {
    if (auto windows = cpu::prepare_pool(parts)) return windows;
    if (auto update = cpu::prepare_single_index_update(parts)) return update;
    return std::make_unique<cpu::Kernel>(parts);
  }
  std::unique_ptr<Executable> prepare(int, const LibrarySpec& spec) override {
    return make_offered(cpu::library_kernels(), spec,
                        [&](const cpu::LibraryKernel& kernel, const char*& why) {
                          return kernel.prepare(spec, why);
                        });
  }
  std::unique_ptr<Executable> chain(std::unique_ptr<Executable> first,
                                    std::unique_ptr<Executable> second, int buffers) override {
    return std::make_unique<cpu::Chain>(std::move(first), std::move(second), buffers);
  }
  void launch(int, Executable& exe, void* const* buffers, void* scratch,
              const RunArgs& run) override {
    or_out_of_memory([&] {
      cpu::take_required_memory();
      static_cast<cpu::CpuExecutable&>(exe).run(buffers, scratch, run);
    });
  }
  uint64_t run(int, uint64_t, std::span<const LaunchItem> items, const RunArgs& run) override {
    or_out_of_memory([&] {
      cpu::take_required_memory();
      for (const LaunchItem& i : items)
        static_cast<cpu::CpuExecutable&>(*i.exe).run(i.buffers, i.scratch, run);
    });
    return 0;
  }
  void synchronize(int) override {}  // a launch returns when it is done

 private:
  static void copy(void* dst, const void* src, size_t bytes) {
    constexpr int64_t piece = 1 << 20;
    cpu::parallel_for(static_cast<int64_t>(bytes), piece, [&](int64_t b, int64_t e) {
      std::memcpy(static_cast<char*>(dst) + b, static_cast<const char*>(src) + b,
                  static_cast<size_t>(e - b));
    });
  }
  std::array<cpu::MemoryPool, 16> pools_;
};

}  // namespace

std::unique_ptr<Backend> make_cpu_backend() { return std::make_unique<CpuBackend>(); }

}  // namespace ingot
