#include "ops/recompute.h"

#include <utility>

namespace ingot {

static thread_local bool again = false;
bool recomputing() { return again; }
Recomputing::Recomputing() : previous_(std::exchange(again, true)) {}
Recomputing::~Recomputing() { again = previous_; }

}  // namespace ingot
