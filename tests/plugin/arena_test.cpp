// The arena of a GPU on the fake CUDA machine: addresses reserved once, memory mapped on demand.
// With FAKE_CUDA_VMM=0 the same programs run on a GPU without virtual memory, where the arena is a
// plain block.
#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>

#include "backend/cuda/runtime/arena.h"
#include "ingot/ingot.h"
#include "plugin/fake_setup.h"
#include "runtime/backend.h"
#include "runtime/storage.h"

using namespace ingot;

namespace {

constexpr size_t kMiB = 1 << 20;

// The two programs of this file may run at once: each has its own cache.
struct Machine : test::FakeMachine {
  Machine() : FakeMachine(std::getenv("FAKE_CUDA_VMM") ? "arena_plain" : "arena") {
    find(has_vmm, "fake_cuda_has_vmm");
    find(graphs_made, "fake_cuda_graphs_made");
    find(mapped, "fake_cuda_mapped");
    find(reserved, "fake_cuda_reserved");
    find(fail_after, "fake_cuda_fail_after");
    find(fail_access, "fake_cuda_fail_access");
  }
  int (*has_vmm)();
  int (*graphs_made)();
  size_t (*mapped)();
  size_t (*reserved)();
  void (*fail_after)(int);
  void (*fail_access)(int);
};
Machine machine;

Device gpu() { return Device("cuda"); }
void* arena_of(size_t bytes) { return ArenaLease(gpu(), bytes).data(); }

/// Is the process killed that reads this byte?
bool deadly(const void* p) {
  const pid_t child = fork();
  if (child == 0) {
    std::signal(SIGSEGV, SIG_DFL);
    [[maybe_unused]] volatile char c = *static_cast<const volatile char*>(p);
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV;
}

/// A plan with temporaries that library calls read and write.
struct Small {
  Tensor x = (arange(0, 12).to(float32) / 12.0).reshape({3, 4}).to(gpu()).eval_();
  Tensor w = (arange(0, 16).to(float32) / 16.0).reshape({4, 4}).to(gpu()).eval_();
  double operator()() const {
    Tensor y = x;
    for (int i = 0; i < 3; ++i) y = y.matmul(w).tanh();
    return y.sum().item();
  }
};
/// One whose temporaries take n MiB and more.
double big(int64_t n) {
  Tensor ones = full({n * 512, 512}, 1.0, gpu()).eval_(), w = full({512, 1}, 0.5, gpu()).eval_();
  Tensor y = ones * 2.0;
  y = y.matmul(w);
  return y.amax().item();
}

}  // namespace

TEST_CASE("the arena grows where it is, and shows in the statistics to the byte") {
  release_arena(gpu());
  const size_t before = machine.used();
  const MemoryStats stats = gpu().memory();
  void* first = arena_of(3 * kMiB + 5);
  CHECK(gpu().memory().arena == 3 * kMiB + 5);
  CHECK(gpu().memory().in_use == stats.in_use + 3 * kMiB + 5);
  CHECK(machine.used() == before + 4 * kMiB);
  CHECK(arena_of(4 * kMiB) == first);  // what is there is enough
  void* grown = arena_of(41 * kMiB);
  CHECK(gpu().memory().arena == 41 * kMiB);
  CHECK(gpu().memory().in_use == stats.in_use + 41 * kMiB);
  CHECK(gpu().memory().peak >= stats.in_use + 41 * kMiB);
  CHECK(arena_of(7) == grown);
  release_arena(gpu());
  CHECK(gpu().memory().in_use == stats.in_use);
  CHECK(gpu().memory().arena == 0);
  CHECK(machine.mapped() == 0);
  if (!machine.has_vmm()) return;
  CHECK(grown == first);
  CHECK(machine.used() == before);
  CHECK(machine.reserved() >= size_t{2} << 30);
  CHECK(arena_of(kMiB) == first);
  CHECK(machine.mapped() == 2 * kMiB);
}

TEST_CASE("a graph captured before the arena grew is launched again as it is") {
  release_arena(gpu());
  Small small;
  const double want = small();
  for (int i = 0; i < 4; ++i) CHECK(small() == want);
  REQUIRE(gpu().memory().arena > 0);
  const size_t arena = gpu().memory().arena;
  CHECK(big(24) == 512);
  CHECK(gpu().memory().arena > arena);
  int made = machine.graphs_made(), launched = machine.graph_launches();
  for (int i = 0; i < 3; ++i) CHECK(small() == want);
  if (machine.has_vmm()) {
    CHECK(machine.graphs_made() == made);
    CHECK(machine.graph_launches() == launched + 3);
  }
  // Given back and taken again, it is at the same place.
  release_arena(gpu());
  made = machine.graphs_made();
  CHECK(small() == want);
  if (machine.has_vmm()) CHECK(machine.graphs_made() == made);
}

TEST_CASE("where there is no memory, the arena stays as it was and the error says who holds it") {
  release_arena(gpu());
  Tensor kept = full({3, 262144}, 1.0, gpu()).eval_();
  void* p = arena_of(4 * kMiB);
  std::vector<char> in(4 * kMiB, 'a'), out(in.size());
  Backend& b = *backend_for(DeviceType::CUDA);
  b.copy_from_host(0, p, in.data(), in.size());
  const MemoryStats stats = gpu().memory();
  const size_t used = machine.used();
  auto fails = [&](size_t bytes) {
    try {
      arena_of(bytes);
      FAIL("no error");
    } catch (const OutOfMemory& e) {
      const std::string what = e.what();
      CHECK(what.find("the arena of temporaries") != std::string::npos);
      CHECK(what.find("largest live tensors: 3.00 MiB") != std::string::npos);
      CHECK(e.requested == bytes);
    }
  };
  auto as_before = [&] {
    CHECK(gpu().memory().in_use == stats.in_use);
    CHECK(gpu().memory().arena == stats.arena);
    CHECK(machine.mapped() == 4 * kMiB);
    CHECK(machine.used() <= used);  // caches were given back
    b.copy_to_host(0, out.data(), p, out.size());
    CHECK(in == out);
    CHECK(arena_of(4 * kMiB) == p);
  };
  gpu().set_memory_limit(stats.in_use + kMiB);
  fails(6 * kMiB);
  CHECK(gpu().memory().arena == stats.arena);
  gpu().set_memory_limit(0);
  machine.fail_after(0);
  fails(50 * kMiB);
  if (machine.has_vmm()) as_before();
  machine.fail_after(-1);
  if (machine.has_vmm()) {
    fails(size_t{1} << 40);  // more than was reserved
    as_before();
    machine.fail_access(2);  // memory that is there and cannot be reached, twice
    fails(50 * kMiB);
    as_before();
    machine.fail_access(1);  // there after caches were given back
    CHECK(arena_of(50 * kMiB) == p);
    CHECK(machine.mapped() == 50 * kMiB);
  }
  CHECK(big(24) == 512);
  // An arena that an earlier plan needed makes room for a tensor.
  gpu().set_memory_limit(gpu().memory().in_use + kMiB);
  Tensor more = zeros({static_cast<int64_t>(2 * kMiB)}, gpu());
  CHECK_NOTHROW(eval(more));
  gpu().set_memory_limit(0);
  CHECK(gpu().memory().arena == 0);
  CHECK(machine.mapped() == 0);
}

TEST_CASE("addresses outside of the arena's memory cannot be accessed") {
  if (!machine.has_vmm()) return;
  release_arena(gpu());
  auto* p = static_cast<char*>(arena_of(3 * kMiB));
  CHECK_FALSE(deadly(p));
  CHECK_FALSE(deadly(p + 4 * kMiB - 1));
  CHECK(deadly(p + 4 * kMiB));
  release_arena(gpu());
  CHECK(deadly(p));
}

TEST_CASE("an arena leaks nothing, and is refused where it cannot be") {
  REQUIRE(cuda::driver().load() == "");
  const size_t reserved = machine.reserved(), mapped = machine.mapped(), used = machine.used();
  {
    cuda::Arena a;
    CHECK(a.reserve(0, 63 * kMiB) == (machine.has_vmm() != 0));
    if (machine.has_vmm()) {
      CHECK(machine.reserved() == reserved + 64 * kMiB);
      CHECK(a.grow(1));
      CHECK(a.grow(5 * kMiB));
      CHECK(a.mapped() == 6 * kMiB);
      CHECK_FALSE(a.grow(65 * kMiB));
      CHECK(a.mapped() == 6 * kMiB);
      CHECK(machine.mapped() == mapped + 6 * kMiB);
    }
  }
  CHECK(machine.reserved() == reserved);
  CHECK(machine.mapped() == mapped);
  CHECK(machine.used() == used);

  auto create = std::exchange(cuda::driver().mem_create, nullptr);
  CHECK_FALSE(cuda::Arena().reserve(0, kMiB));
  cuda::driver().mem_create = create;
  setenv("INGOT_CUDA_VMM", "0", 1);
  CHECK_FALSE(cuda::Arena().reserve(0, kMiB));
  unsetenv("INGOT_CUDA_VMM");
  CHECK(machine.reserved() == reserved);
}
