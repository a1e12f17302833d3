// Memory is host memory, so that small values (and shapes) can be read back; launches are only
// counted.
#include "backend/null/null_backend.h"

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>

namespace ingot {
namespace {

std::atomic<int64_t> generated{0}, library{0}, launched{0}, compiled{0};
std::mutex kernels_mutex;
NullKernels kernels;

bool is_conv(Op op) {
  return op == Op::Conv || op == Op::ConvGradInput || op == Op::ConvGradWeight;
}

const char* refuses(const LibrarySpec& spec) {
  if (spec.op != Op::Attention && spec.op != Op::AttentionGrad) return nullptr;
  if (!null_kernels().attention) return "attention is switched off";
  // As on a GPU: attention is a call in 16 bits, for heads of common sizes.
  const OperandSpec& head = spec.operands[0];
  if (!is_half(head.dtype)) return "it takes attention of 16 bits only";
  const int64_t size = head.shape.back();
  return size % 8 != 0 || size > 128 ? "heads must be multiples of 8, up to 128" : nullptr;
}

OfferRow row() {
  static constexpr OpSet kAll([](Op) { return true; });
  return {"null", kAll, null_kernels().epilogues, refuses};
}

struct NullExecutable : Executable {
  bool is_library = false;
  NullExecutable() = default;
  NullExecutable(const Executable& first, const Executable& second) { add_up(first, second); }
};

class NullBackend : public Backend {
 public:
  int device_count() override { return 8; }
  DeviceRates rates(int) override {
    return {.name = "null",
            .memory_gbs = 4284,
            .flops_f32 = 50e12,
            .flops_16 = 786e12,
            .flops_f64 = 50e12,
            .scalar_flops = 40e12,
            .launch_us = 1,
            .threads = 132 * 2048};
  }
  size_t free_memory(int) override { return size_t{1} << 40; }
  // calloc of untouched pages costs nothing, so plans for large models can be bound here.
  void* allocate(int, size_t bytes) override { return std::calloc(bytes, 1); }
  void deallocate(int, void* p, size_t) override { std::free(p); }
  void copy_from_host(int, void* d, const void* s, size_t n) override { std::memcpy(d, s, n); }
  void copy_to_host(int, void* d, const void* s, size_t n) override { std::memcpy(d, s, n); }
  void copy_on_device(int, void*, const void*, size_t) override {}
  size_t total_memory(int) override { return 0; }
  bool host_visible() const override { return true; }
  Offer best_offer(const LibrarySpec& spec) override {
    const OfferRow only = row();
    Offer offer = ingot::best_offer(std::span(&only, 1), spec);
    offer.channels_last = offer && is_conv(spec.op) && null_kernels().channels_last;
    return offer;
  }
  std::vector<Refusal> refusals(const LibrarySpec& spec) override {
    const OfferRow only = row();
    return ingot::refusals(std::span(&only, 1), spec);
  }
  std::unique_ptr<Executable> compile(int, std::span<const KernelSpec> parts) override {
    for (const KernelSpec& k : parts) verify(k);
    auto e = std::make_unique<NullExecutable>();
    const KernelSpec& k = parts[0];
    // As a GPU would: few outer points and much to reduce takes a second stage.
    if (k.has_reduce() && !k.is_row() && k.outer_size() < 4096 && k.inner_size() > 65536)
      e->launches = 2;
    ++compiled;
    return e;
  }
  std::unique_ptr<Executable> prepare(int, const LibrarySpec& spec) override {
    auto e = std::make_unique<NullExecutable>();
    // As a GPU would: a product and a cell for each step.
    if (is_recurrent(spec.op)) e->launches = 2 * static_cast<int>(spec.operands[0].shape[0]);
    e->is_library = true;
    e->kernel = "null";
    return e;
  }
  std::unique_ptr<Executable> chain(std::unique_ptr<Executable> first,
                                    std::unique_ptr<Executable> second, int) override {
    return std::make_unique<NullExecutable>(*first, *second);
  }
  void launch(int, Executable& exe, void* const*, void*, const RunArgs&) override {
    auto& e = static_cast<NullExecutable&>(exe);
    ++(e.is_library ? library : generated);
    launched += e.launches;
  }
  void synchronize(int) override {}
};

}  // namespace

NullCounts null_counts() { return {generated, library, launched, compiled}; }
void reset_null_counts() { generated = library = launched = compiled = 0; }
NullKernels null_kernels() {
  std::lock_guard lock(kernels_mutex);
  return kernels;
}
void set_null_kernels(const NullKernels& to) {
  std::lock_guard lock(kernels_mutex);
  kernels = to;
}
std::unique_ptr<Backend> make_null_backend() { return std::make_unique<NullBackend>(); }

}  // namespace ingot
