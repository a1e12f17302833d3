// amp::Autocast: a mode of the thread, consulted when an operation is recorded. Casts are nodes
// like others, so a weight used twice in a step is cast once: equal casts are one value to the
// compiler.
#include "ops/autocast.h"

#include "base/thread.h"
#include "ingot/amp.h"
#include "ops/common.h"

namespace ingot {
namespace {

struct Mode {
  bool on = false;
  DType type = DType::BFloat16;
};
INGOT_THREAD_LOCAL Mode mode;

}  // namespace

bool autocasting() { return mode.on; }
DType autocast_type() { return mode.type; }

Tensor lowered(const Tensor& x) {
  if (!mode.on || !x.defined()) return x;
  const DType t = x.dtype();
  return t == DType::Float32 || is_half(t) ? x.to(mode.type) : x;
}

DType raised(DType t) { return mode.on && is_half(t) ? DType::Float32 : t; }

namespace amp {

Autocast::Autocast(DType dtype, bool enabled, SourceLoc loc)
    : previous_type_(mode.type), previous_on_(mode.on) {
  if (!is_half(dtype))
    fail(ErrorKind::DType, "Autocast",
         "casts to bfloat16 or float16, not to " + std::string(name_of(dtype)), user_loc(loc));
  mode = {enabled, dtype};
}
Autocast::~Autocast() { mode = {previous_on_, previous_type_}; }
bool is_autocast_enabled() { return mode.on; }

}  // namespace amp
}  // namespace ingot
