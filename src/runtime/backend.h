// What a backend implements, and nothing else. Backends register themselves under a device type;
// the executor (compile/) sees only this interface.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "codegen/offer.h"
#include "ingot/device.h"

namespace ingot {

/// The run's status word and the record of its first error. code is 0 while all is well; kernels
/// set it once (compare-and-swap), predicated stores look at it.
struct RunStatus {
  enum Code : int32_t { Ok = 0, IndexError = 1, NonFinite = 2, Unsolvable = 3 };
  int32_t code = 0;
  int32_t site = -1;
  int64_t value = 0;   // the bad index; Unsolvable: which matrix
  int64_t extent = 0;  // the size it was used on; Unsolvable: pivot | LinalgKind << 32
};

/// Values handed to a run that are not part of the plan.
struct RunArgs {
  const double* args = nullptr;       // InstrKind::Arg slots
  const uint64_t* seeds = nullptr;    // per Random slot: key
  const uint64_t* offsets = nullptr;  // per Random slot: counter at the plan's start
  RunStatus* status =
      nullptr;  // in the device's memory (launch), or the host's (run: filled when known)
  int n_args = 0, n_seeds = 0;
  bool captured = false;  // repeated without recording: the host has time to spare
  bool continues =
      false;  // a later part of the run before it on this device: what failed there has failed
};

/// A plan with more runs of steps on one device than this shares their names, which costs time
/// alone.
inline constexpr uint64_t kPartsOfPlan = 4096;

class Executable;
/// One launch of a run, with its addresses.
struct LaunchItem {
  Executable* exe;
  void* const* buffers;
  int n_buffers;
  void* scratch;
};

/// Rates used to predict times (explain) and limits used to plan.
struct DeviceRates {
  std::string name;
  double memory_gbs = 0;                              // copy bandwidth, bytes read + written
  double flops_f32 = 0, flops_16 = 0, flops_f64 = 0;  // matrix product, flop/s
  double scalar_flops = 0;                            // elementwise arithmetic
  double launch_us = 0;                               // cost of one more kernel
  int threads = 1;
};

/// A compiled kernel or prepared library call; made once, launched many times, from any thread.
class Executable {
 public:
  virtual ~Executable() = default;
  size_t scratch_bytes = 0;  // the plan gives this much arena memory to each launch
  int launches = 1;          // device launches one run takes (a two-stage reduce is 2)
  /// Library calls: the row of the backend's table that it is, and why those before it are not.
  const char* kernel = nullptr;
  std::vector<Refusal> refused;
  /// Host memory it holds, code included: what the plan cache counts. A prepared library call by
  /// default.
  virtual size_t host_bytes() const { return 2048; }

 protected:
  /// Room for what both need, one after the other; returns where the second's scratch begins.
  size_t add_up(const Executable& first, const Executable& second) {
    const size_t at = (first.scratch_bytes + 255) / 256 * 256;
    scratch_bytes = second.scratch_bytes ? at + second.scratch_bytes : first.scratch_bytes;
    launches = first.launches + second.launches;
    return at;
  }
};

/// The first row's kernel that takes the call and can be made; nullptr when there is none. `make`
/// as in first_offer(): its result, or nullptr with a reason.
template <class Row, class Make>
std::unique_ptr<Executable> make_offered(std::span<const Row> table, const LibrarySpec& spec,
                                         Make make) {
  std::unique_ptr<Executable> made;
  std::vector<Refusal> refused;
  first_offer(table, spec, &refused, [&](const Row& row, const char*& why) {
    made = make(row, why);
    if (made) made->kernel = row.kernel;
    return made != nullptr;
  });
  if (made) made->refused = std::move(refused);
  return made;
}

/// The memory that the plans of a device share for what does not survive a run.
struct ArenaBlock {
  void* data = nullptr;
  size_t bytes = 0;
};

class Backend {
 public:
  virtual ~Backend() = default;
  virtual int device_count() = 0;
  virtual DeviceRates rates(int device) = 0;
  virtual size_t free_memory(int device) = 0;
  virtual size_t total_memory(int device) = 0;
  /// Name of the chip and what else people ask of it: pairs of a word and its value.
  using Facts = std::vector<std::pair<std::string, std::string>>;
  virtual std::string chip(int device) { return rates(device).name; }
  virtual Facts facts(int device) {
    (void)device;
    return {};
  }

  // Memory. allocate returns nullptr when there is none; 64-byte aligned (256 on CUDA).
  virtual void* allocate(int device, size_t bytes) = 0;
  virtual void deallocate(int device, void* p, size_t bytes) = 0;
  /// Resizes the device's arena to `bytes`, 0 to free it, and returns the new one: shorter than
  /// requested when there is no memory. Its contents are lost; it waits for runs that use what is
  /// freed. In this default the arena is a block that moves when it grows; a backend may grow it
  /// in place.
  virtual ArenaBlock resize_arena(int device, ArenaBlock now, size_t bytes) {
    synchronize(device);
    if (now.data) deallocate(device, now.data, now.bytes);
    void* p = bytes ? allocate(device, bytes) : nullptr;
    return p ? ArenaBlock{p, bytes} : ArenaBlock{};
  }
  virtual void copy_from_host(int device, void* dst, const void* src, size_t bytes) = 0;
  virtual void copy_to_host(int device, void* dst, const void* src, size_t bytes) = 0;
  virtual void copy_on_device(int device, void* dst, const void* src, size_t bytes) = 0;
  /// Is memory of this device readable by the host through the same pointer?
  virtual bool host_visible() const = 0;

  // Code. All parts of a generated kernel have the same structure; buffers of a launch are the
  // parts' buffers one after the other.
  virtual std::unique_ptr<Executable> compile(int device, std::span<const KernelSpec> parts) = 0;
  /// The kernel that would run a library call. None: the compiler does without that epilogue,
  /// decomposes the op, or reports it.
  virtual Offer best_offer(const LibrarySpec& spec) = 0;
  /// Why the kernels that it prefers to that one do not run the call; for people.
  virtual std::vector<Refusal> refusals(const LibrarySpec& spec) {
    (void)spec;
    return {};
  }
  /// nullptr where all kernels refuse the call after all (a library may find out so late): the
  /// compiler then decomposes it.
  virtual std::unique_ptr<Executable> prepare(int device, const LibrarySpec& spec) = 0;
  /// One kernel of two stages: the second begins when all of the first is done. Their buffers
  /// follow each other; `buffers` are the first's.
  virtual std::unique_ptr<Executable> chain(std::unique_ptr<Executable> first,
                                            std::unique_ptr<Executable> second, int buffers) = 0;
  virtual void launch(int device, Executable& exe, void* const* buffers, void* scratch,
                      const RunArgs& run) = 0;

  /// A whole run on one device, in order; plan names it (the plan's number times kPartsOfPlan, and
  /// which part of it), the same plan comes with the same items but for addresses. Fills run.status
  /// (host memory) when the device answers at once, as the CPU does. An asynchronous device
  /// returns a ticket instead (not 0) and answers poll() later.
  virtual uint64_t run(int device, uint64_t plan, std::span<const LaunchItem> items,
                       const RunArgs& run) {
    (void)plan;
    for (const LaunchItem& i : items) launch(device, *i.exe, i.buffers, i.scratch, run);
    return 0;
  }
  /// The plan with this number was freed: what run() keeps for it can be freed too.
  virtual void forget(int device, uint64_t plan) { (void)device, (void)plan; }
  /// A run whose launches are timed one by one, without pauses between them; false when this
  /// backend cannot.
  virtual bool run_timed(int device, std::span<const LaunchItem> items, const RunArgs& run,
                         std::vector<double>& microseconds) {
    (void)device, (void)items, (void)run, (void)microseconds;
    return false;
  }
  /// The status of a run that gave this ticket; false while the device is not that far (unless
  /// `wait`).
  virtual bool poll(int device, uint64_t ticket, bool wait, RunStatus& status) {
    (void)device, (void)ticket, (void)wait, (void)status;
    return true;
  }

  /// The file that choices measured on this device are kept in; "" when there is none.
  virtual std::string tuning_file(int device) {
    (void)device;
    return {};
  }

  /// Waits for everything launched on the device.
  virtual void synchronize(int device) = 0;
};

/// nullptr when there is no backend of that type. CUDA's is looked for (and loaded) at the first
/// call.
Backend* backend_for(DeviceType type);
void register_backend(DeviceType type, std::unique_ptr<Backend> backend);
/// Makes the backend of a type at its first use, or says in `reason` why there is none
/// (wiring/wiring.cpp).
std::unique_ptr<Backend> make_builtin_backend(DeviceType type, std::string& reason);
/// Why backend_for(type) is nullptr, and what to do about it.
std::string missing_reason(DeviceType type);

}  // namespace ingot
