// See emulated_backend.h.
#include "emulator/emulated_backend.h"

#include <cstdlib>
#include <cstring>

#include "emulator/emulator.h"

namespace ingot::test {
namespace {

struct EmulatedKernel : Executable {
  CudaText text;
  CudaLaunch launch;
  std::vector<size_t> buffers;  // per part
};
struct EmulatedLibrary : Executable {
  std::unique_ptr<Executable> cpu;
};

class EmulatedBackend : public Backend {
 public:
  explicit EmulatedBackend(bool collect) : collect_(collect) {}
  int device_count() override { return 1; }
  DeviceRates rates(int) override {
    return {.name = "emulated", .memory_gbs = 4284, .flops_f32 = 50e12, .flops_16 = 786e12, .flops_f64 = 50e12,
            .scalar_flops = 40e12, .launch_us = 1, .threads = 132 * 2048};
  }
  size_t free_memory(int) override { return size_t{1} << 40; }
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

  bool supports(const LibrarySpec& spec) override { return cpu()->supports(spec); }
  std::unique_ptr<Executable> compile(int, std::span<const KernelSpec> parts) override {
    for (const KernelSpec& k : parts) verify(k);
    auto e = std::make_unique<EmulatedKernel>();
    e->text = emit_cuda(parts);
    e->launch = e->text.launch(parts);
    for (const KernelSpec& k : parts) e->buffers.push_back(k.buffers.size());
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
  void launch(int, Executable& exe, void* const* buffers, void* scratch, const RunArgs& run) override {
    if (collect_) return;
    if (auto* library = dynamic_cast<EmulatedLibrary*>(&exe)) return cpu()->launch(0, *library->cpu, buffers, scratch, run);
    auto& kernel = static_cast<EmulatedKernel&>(exe);
    CudaLaunch l = kernel.launch;
    size_t b = 0;
    for (size_t p = 0; p < kernel.buffers.size(); ++p)
      for (size_t n = 0; n < kernel.buffers[p]; ++n, ++b) {
        // Every second address goes through a table, as those of external buffers do in a replayed graph.
        auto direct = reinterpret_cast<uint64_t>(buffers[b]), table = reinterpret_cast<uint64_t>(&buffers[b]) | kIndirectPointer;
        l.pointer(static_cast<int>(p), static_cast<int>(n)) = static_cast<int64_t>(b % 2 == 0 ? direct : table);
      }
    Emulator::get().run(kernel.text, l, {run.args, run.seeds, run.offsets, run.status, scratch, l.table.data()});
  }
  void synchronize(int) override {}

 private:
  static Backend* cpu() { return backend_for(DeviceType::CPU); }
  bool collect_;
};

}  // namespace

std::unique_ptr<Backend> make_emulated_backend(bool collect) { return std::make_unique<EmulatedBackend>(collect); }

}  // namespace ingot::test
