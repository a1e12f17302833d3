// Which generators a stretch of recording drew from: a captured function draws as much again at
// every repetition.
#pragma once
#include <cstdint>
#include <vector>

#include "graph/thread_state.h"
#include "ingot/random.h"

namespace ingot {

struct RandomUse {
  Generator generator;
  uint64_t seed, start, end;  // counters taken: [start, end)
};
/// Where this thread's draws are noted, or null.
inline std::vector<RandomUse>*& random_uses() { return this_thread.random_uses; }

}  // namespace ingot
