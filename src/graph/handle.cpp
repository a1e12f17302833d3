// See handle.h.
#include "graph/handle.h"

#include <atomic>

#include "base/env.h"
#include "graph/thread_state.h"
#include "ingot/runtime.h"

namespace ingot {

static std::atomic<bool> eager{env::flag("INGOT_EAGER")};
bool is_eager() { return eager.load(std::memory_order_relaxed) && !this_thread.aside; }
void set_eager(bool on) { eager = on; }

void run_at_its_line(const Tensor& t) {
  const NodeRef held = t.cell()->current();
  Node* n = held;
  if (!n->computed.load(std::memory_order_acquire) && !this_thread.capture)
    materialise({&n, 1}, n->loc);
}

void throw_undefined(const char* op, const SourceLoc& loc) {
  throw Error(ErrorKind::State, op,
              "a tensor is undefined: it was made by Tensor() and never given a value, or it is "
              "the gradient "
              "of a parameter that has none",
              loc,
              "assign it first, for instance with zeros(shape); optimizer.step() takes gradients "
              "away: read "
              "them before it, or keep them by step(/*keep_gradients=*/true)");
}

}  // namespace ingot
