// See fibers.h. Switching saves the callee-saved registers on the fiber's own stack: a few
// nanoseconds on x86-64; elsewhere ucontext does the same, more slowly.
#include "emulator/fibers.h"

#include <sys/mman.h>

#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#if !defined(__x86_64__)
#include <ucontext.h>
#endif

#include "emulator/cuda_state.h"

namespace ingot::test {
namespace {

enum class Wait : uint8_t { Ready, Block, Warp, Ended };
constexpr size_t kStack = 256 * 1024;

struct Fiber {
  Wait wait = Wait::Ready;
  uint64_t value = 0;  // given to a shuffle, then its result
  unsigned from = 0;
#if defined(__x86_64__)
  void* sp = nullptr;
#else
  ucontext_t context;
#endif
};

struct Block {
  std::vector<Fiber> fibers;
  IgEmuState* state = nullptr;
  const std::function<void()>* body = nullptr;
  unsigned current = 0;
  char* stacks = nullptr;
  size_t n_stacks = 0;
#if defined(__x86_64__)
  void* scheduler = nullptr;
#else
  ucontext_t scheduler;
#endif
};
thread_local Block block;

#if defined(__x86_64__)
extern "C" void ig_fiber_switch(void** save, void* to);
asm(R"(
.text
.globl ig_fiber_switch
.type ig_fiber_switch,@function
ig_fiber_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size ig_fiber_switch,.-ig_fiber_switch
)");
void to_scheduler() { ig_fiber_switch(&block.fibers[block.current].sp, block.scheduler); }
void to_fiber(Fiber& f) { ig_fiber_switch(&block.scheduler, f.sp); }
#else
void to_scheduler() { swapcontext(&block.fibers[block.current].context, &block.scheduler); }
void to_fiber(Fiber& f) { swapcontext(&block.scheduler, &f.context); }
#endif

void fiber_main() {
  (*block.body)();
  block.fibers[block.current].wait = Wait::Ended;
  to_scheduler();
}

void prepare(unsigned n) {
  Fiber& f = block.fibers[n];
  f.wait = Wait::Ready;
  char* stack = block.stacks + n * kStack;
#if defined(__x86_64__)
  // The first switch pops six registers and returns into fiber_main with the stack as after a call.
  auto* top = reinterpret_cast<void**>(stack + kStack) - 1;
  *top = nullptr;
  *--top = reinterpret_cast<void*>(&fiber_main);
  f.sp = top - 6;
#else
  getcontext(&f.context);
  f.context.uc_stack = {stack, 0, kStack};
  f.context.uc_link = nullptr;
  makecontext(&f.context, fiber_main, 0);
#endif
}

void wait_for_block() {
  block.fibers[block.current].wait = Wait::Block;
  to_scheduler();
}

unsigned long long wait_for_warp(unsigned long long value, unsigned from) {
  Fiber& f = block.fibers[block.current];
  f.value = value;
  f.from = from;
  f.wait = Wait::Warp;
  to_scheduler();
  return f.value;
}

/// Hands the lanes of a warp one another's values when all of them wait for it. False: they do not.
bool exchange(unsigned begin, unsigned end) {
  uint64_t values[32];
  for (unsigned n = begin; n < end; ++n) {
    if (block.fibers[n].wait != Wait::Warp) return false;
    values[n - begin] = block.fibers[n].value;
  }
  for (unsigned n = begin; n < end; ++n) {
    Fiber& f = block.fibers[n];
    if (f.from < end - begin) f.value = values[f.from];
    f.wait = Wait::Ready;
  }
  return true;
}

/// Runs a warp until its threads have ended or wait for the block.
void run_warp(unsigned begin, unsigned end) {
  for (;;) {
    bool any_warp = false;
    for (unsigned n = begin; n < end; ++n) {
      if (block.fibers[n].wait == Wait::Ready) {
        block.current = n;
        block.state->thread.x = n;
        to_fiber(block.fibers[n]);
      }
      any_warp |= block.fibers[n].wait == Wait::Warp;
    }
    if (!any_warp) return;
    if (!exchange(begin, end))
      throw std::runtime_error("emulator: a shuffle that not all threads of the warp reach");
  }
}

}  // namespace

void run_fibers(unsigned threads, IgEmuState& state, const std::function<void()>& body) {
  if (block.n_stacks < threads) {
    if (block.stacks != nullptr) munmap(block.stacks, block.n_stacks * kStack);
    void* m = mmap(nullptr, threads * kStack, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (m == MAP_FAILED)
      throw std::runtime_error("emulator: no memory for " + std::to_string(threads) + " stacks");
    block.stacks = static_cast<char*>(m);
    block.n_stacks = threads;
  }
  block.fibers.resize(threads);
  block.state = &state;
  block.body = &body;
  state.barrier = wait_for_block;
  state.shuffle = wait_for_warp;
  for (unsigned n = 0; n < threads; ++n) prepare(n);
  for (;;) {
    for (unsigned w = 0; w < threads; w += 32) run_warp(w, std::min(w + 32, threads));
    unsigned ended = 0;
    for (Fiber& f : block.fibers) ended += f.wait == Wait::Ended;
    if (ended == threads) return;
    if (ended > 0)
      throw std::runtime_error("emulator: some threads ended while others wait at a barrier");
    for (Fiber& f : block.fibers) f.wait = Wait::Ready;
  }
}

}  // namespace ingot::test
