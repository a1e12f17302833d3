// See emulated_backend.h.
#include "emulator/emulated_backend.h"

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>

#include "emulator/emulator.h"
#include "support/spec_interpreter.h"

namespace ingot::test {
namespace {

struct EmulatedKernel : Executable {
  CudaText text;
  CudaLaunch launch;
  std::vector<size_t> buffers;  // per part
  std::vector<KernelSpec> parts;
};
struct EmulatedLibrary : Executable {
  std::unique_ptr<Executable> cpu;
};

/// INGOT_EMULATOR_CHECK=1: every kernel is also interpreted, and the first that differs is printed.
class Check {
 public:
  Check(const EmulatedKernel& kernel, void* const* buffers) : kernel_(kernel), buffers_(buffers) {
    size_t b = 0;
    for (const KernelSpec& k : kernel.parts)
      for (const BufferSpec& spec : k.buffers) {
        auto* p = static_cast<const char*>(buffers[b++]);
        copies_.emplace_back(p, p + static_cast<size_t>(spec.numel) * size_of(spec.dtype));
      }
  }
  void compare(const RunArgs& run) {
    RunStatus status;
    RunArgs mine = run;
    mine.status = &status;
    size_t b = 0;
    for (const KernelSpec& k : kernel_.parts) {
      std::vector<void*> pointers;
      for (size_t n = 0; n < k.buffers.size(); ++n) pointers.push_back(copies_[b + n].data());
      interpret(k, pointers.data(), mine);
      for (size_t n = 0; n < k.buffers.size(); ++n)
        if (k.buffers[n].written) compare_buffer(k, n, b + n);
      b += k.buffers.size();
    }
  }

 private:
  void compare_buffer(const KernelSpec& k, size_t n, size_t b) {
    DType t = k.buffers[n].dtype;
    for (int64_t i = 0; i < k.buffers[n].numel; ++i) {
      Element got = read_element(t, buffers_[b], i), want = read_element(t, copies_[b].data(), i);
      double near = (is_half(t)            ? 2e-2
                     : t == DType::Float32 ? 1e-3
                                           : 1e-9) *
                    std::max(1.0, std::fabs(want.f));
      if (got.i == want.i &&
          (std::fabs(got.f - want.f) <= near || std::isnan(want.f) || got.f == want.f))
        continue;
      std::fprintf(stderr, "emulator: b%zu[%lld] is %g / %lld, want %g / %lld\n%s%s\n%s\n", n,
                   static_cast<long long>(i), got.f, static_cast<long long>(got.i), want.f,
                   static_cast<long long>(want.i), to_string(k).c_str(),
                   kernel_.text.schedule.c_str(), kernel_.text.body.c_str());
      std::abort();
    }
  }
  const EmulatedKernel& kernel_;
  void* const* buffers_;
  std::vector<std::vector<char>> copies_;
};

struct EmulatedChain : Executable {
  EmulatedChain(std::unique_ptr<Executable> a, std::unique_ptr<Executable> b, int n)
      : first(std::move(a)), second(std::move(b)), buffers(n) {
    scratch = add_up(*first, *second);
  }
  std::unique_ptr<Executable> first, second;
  int buffers;
  size_t scratch;
};

class EmulatedBackend : public Backend {
 public:
  explicit EmulatedBackend(bool collect) : collect_(collect) {}
  int device_count() override { return 1; }
  DeviceRates rates(int) override {
    return {.name = "emulated",
            .memory_gbs = 4284,
            .flops_f32 = 50e12,
            .flops_16 = 786e12,
            .flops_f64 = 50e12,
            .scalar_flops = 40e12,
            .launch_us = 1,
            .threads = 132 * 2048};
  }
  size_t free_memory(int) override { return size_t{1} << 40; }
  size_t total_memory(int) override { return size_t{1} << 40; }
  void* allocate(int, size_t bytes) override {
    void* p = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
    if (p != nullptr) std::memset(p, collect_ ? 0 : 0x7f, bytes);
    return p;
  }
  void deallocate(int, void* p, size_t) override { std::free(p); }
  void copy_from_host(int, void* d, const void* s, size_t n) override { std::memcpy(d, s, n); }
  void copy_to_host(int, void* d, const void* s, size_t n) override { std::memcpy(d, s, n); }
  void copy_on_device(int, void* d, const void* s, size_t n) override { std::memmove(d, s, n); }
  bool host_visible() const override { return false; }

  // The CPU's kernels, in the layout that a GPU's would ask for.
  Offer best_offer(const LibrarySpec& spec) override {
    Offer offer = cpu()->best_offer(spec);
    offer.channels_last = true;
    return offer;
  }
  std::unique_ptr<Executable> compile(int, std::span<const KernelSpec> parts) override {
    for (const KernelSpec& k : parts) verify(k);
    auto e = std::make_unique<EmulatedKernel>();
    e->text = emit_cuda(parts);
    e->launch = e->text.launch(parts);
    for (const KernelSpec& k : parts) e->buffers.push_back(k.buffers.size());
    e->parts.assign(parts.begin(), parts.end());
    e->scratch_bytes = e->launch.scratch_bytes;
    e->launches = static_cast<int>(e->text.stages.size());
    Emulator::get().add(e->text);
    return e;
  }
  std::unique_ptr<Executable> prepare(int, const LibrarySpec& spec) override {
    auto e = std::make_unique<EmulatedLibrary>();
    e->cpu = cpu()->prepare(0, spec);
    if (e->cpu == nullptr) return nullptr;
    e->scratch_bytes = e->cpu->scratch_bytes;
    return e;
  }
  std::unique_ptr<Executable> chain(std::unique_ptr<Executable> first,
                                    std::unique_ptr<Executable> second, int buffers) override {
    return std::make_unique<EmulatedChain>(std::move(first), std::move(second), buffers);
  }
  void launch(int device, Executable& exe, void* const* buffers, void* scratch,
              const RunArgs& run) override {
    if (collect_) return;
    if (auto* two = dynamic_cast<EmulatedChain*>(&exe)) {
      launch(device, *two->first, buffers, scratch, run);
      return launch(device, *two->second, buffers + two->buffers,
                    static_cast<char*>(scratch) + two->scratch, run);
    }
    if (auto* library = dynamic_cast<EmulatedLibrary*>(&exe))
      return cpu()->launch(0, *library->cpu, buffers, scratch, run);
    auto& kernel = static_cast<EmulatedKernel&>(exe);
    CudaLaunch l = kernel.launch;
    size_t b = 0;
    for (size_t p = 0; p < kernel.buffers.size(); ++p)
      for (size_t n = 0; n < kernel.buffers[p]; ++n, ++b) {
        // Every second address goes through a table, as those of external buffers do in a replayed
        // graph.
        auto direct = reinterpret_cast<uint64_t>(buffers[b]),
             table = reinterpret_cast<uint64_t>(&buffers[b]) | kIndirectPointer;
        l.pointer(static_cast<int>(p), static_cast<int>(n)) =
            static_cast<int64_t>(b % 2 == 0 ? direct : table);
      }
    std::optional<Check> check;
    if (std::getenv("INGOT_EMULATOR_CHECK") != nullptr) check.emplace(kernel, buffers);
    Emulator::get().run(kernel.text, l,
                        {run.args, run.seeds, run.offsets, run.status, scratch, l.table.data()});
    if (check && run.status->code == 0) check->compare(run);
  }
  void synchronize(int) override {}

 private:
  static Backend* cpu() { return backend_for(DeviceType::CPU); }
  bool collect_;
};

}  // namespace

std::unique_ptr<Backend> make_emulated_backend(bool collect) {
  return std::make_unique<EmulatedBackend>(collect);
}

}  // namespace ingot::test
