// amp::Autocast: a mode of the thread, consulted when an operation is recorded. Casts are nodes
// like others, so a weight used twice in a step is cast once: equal casts are one value to the
// compiler.
#include "ops/autocast.h"

#include "graph/thread_state.h"
#include "ingot/amp.h"
#include "ops/common.h"

namespace ingot {

bool autocasting() { return this_thread.autocast; }
DType autocast_type() { return this_thread.autocast_type; }

Tensor lowered(const Tensor& x) {
  if (!autocasting() || !x.defined()) return x;
  const DType t = x.dtype();
  return t == DType::Float32 || is_half(t) ? x.to(autocast_type()) : x;
}

DType raised(DType t) { return autocasting() && is_half(t) ? DType::Float32 : t; }

namespace amp {

Autocast::Autocast(DType dtype, bool enabled, SourceLoc loc)
    : previous_type_(autocast_type()), previous_on_(autocasting()) {
  if (!is_half(dtype))
    fail(ErrorKind::DType, "Autocast",
         "casts to bfloat16 or float16, not to " + std::string(name_of(dtype)), user_loc(loc));
  this_thread.autocast = enabled;
  this_thread.autocast_type = dtype;
}
Autocast::~Autocast() {
  this_thread.autocast = previous_on_;
  this_thread.autocast_type = previous_type_;
}
bool is_autocast_enabled() { return autocasting(); }

}  // namespace amp
}  // namespace ingot
