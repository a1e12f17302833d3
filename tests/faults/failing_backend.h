// The CPU backend with faults: its memory can run out, and its launches can fail, at a chosen call.
#pragma once
#include <memory>
#include <utility>
#include <vector>

#include "ingot/error.h"
#include "runtime/backend.h"

namespace ingot::test {

class FailingBackend final : public Backend {
 public:
  explicit FailingBackend(Backend& cpu) : cpu_(cpu) {}
  /// Puts itself before the CPU backend, for the rest of the process.
  static FailingBackend& install() {
    static FailingBackend* made = [] {
      auto own = std::make_unique<FailingBackend>(*backend_for(DeviceType::CPU));
      FailingBackend* b = own.get();
      register_backend(DeviceType::CPU, std::move(own));
      return b;
    }();
    return *made;
  }

  /// The allocation after so many more fails; -1: none.
  int64_t allocations_left = -1;
  int64_t allocations = 0;
  /// The launch after so many more throws; -1: none.
  int64_t launches_left = -1;
  int64_t launches = 0;

  void* allocate(int device, size_t bytes) override {
    ++allocations;
    if (allocations_left >= 0 && allocations_left-- == 0) return nullptr;
    return cpu_.allocate(device, bytes);
  }
  void launch(int device, Executable& exe, void* const* buffers, void* scratch,
              const RunArgs& run) override {
    ++launches;
    if (launches_left >= 0 && launches_left-- == 0)
      throw OutOfMemory("no memory in this test", 0, 0, 0);
    cpu_.launch(device, exe, buffers, scratch, run);
  }

  int device_count() override { return cpu_.device_count(); }
  DeviceRates rates(int d) override { return cpu_.rates(d); }
  size_t free_memory(int d) override { return cpu_.free_memory(d); }
  size_t total_memory(int d) override { return cpu_.total_memory(d); }
  void deallocate(int d, void* p, size_t n) override { cpu_.deallocate(d, p, n); }
  void copy_from_host(int d, void* to, const void* from, size_t n) override {
    cpu_.copy_from_host(d, to, from, n);
  }
  void copy_to_host(int d, void* to, const void* from, size_t n) override {
    cpu_.copy_to_host(d, to, from, n);
  }
  void copy_on_device(int d, void* to, const void* from, size_t n) override {
    cpu_.copy_on_device(d, to, from, n);
  }
  bool host_visible() const override { return true; }
  Offer best_offer(const LibrarySpec& s) override { return cpu_.best_offer(s); }
  std::unique_ptr<Executable> compile(int d, std::span<const KernelSpec> p) override {
    return cpu_.compile(d, p);
  }
  std::unique_ptr<Executable> prepare(int d, const LibrarySpec& s) override {
    return cpu_.prepare(d, s);
  }
  std::unique_ptr<Executable> chain(std::unique_ptr<Executable> a, std::unique_ptr<Executable> b,
                                    int n) override {
    return cpu_.chain(std::move(a), std::move(b), n);
  }
  void synchronize(int d) override { cpu_.synchronize(d); }

 private:
  Backend& cpu_;
};

}  // namespace ingot::test
