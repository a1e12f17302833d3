// Generators: seed and counter, and the draws that a captured function notes.
#include <algorithm>
#include <memory>
#include <mutex>

#include "base/fork.h"
#include "graph/random_uses.h"
#include "ingot/random.h"

namespace ingot {

struct Generator::State {
  ForkMutex<ForkOrder::Small> mutex;
  uint64_t seed = 0, offset = 0;
};

Generator::Generator(uint64_t seed) : state_(std::make_shared<State>()) { state_->seed = seed; }
uint64_t Generator::seed() const {
  std::lock_guard lock(state_->mutex);
  return state_->seed;
}
void Generator::manual_seed(uint64_t seed) const {
  std::lock_guard lock(state_->mutex);
  state_->seed = seed;
  state_->offset = 0;
}
uint64_t Generator::offset() const {
  std::lock_guard lock(state_->mutex);
  return state_->offset;
}
void Generator::set_offset(uint64_t offset) const {
  std::lock_guard lock(state_->mutex);
  state_->offset = offset;
}
uint64_t Generator::take(uint64_t n, uint64_t* seed) const {
  uint64_t first;
  {
    std::lock_guard lock(state_->mutex);
    *seed = state_->seed;
    first = state_->offset;
    state_->offset += n;
  }
  std::vector<RandomUse>* uses = random_uses();
  if (!uses) return first;
  for (RandomUse& u : *uses)
    if (u.generator.state_ == state_ && u.seed == *seed) {
      u.start = std::min(u.start, first);
      u.end = std::max(u.end, first + n);
      return first;
    }
  uses->push_back({*this, *seed, first, first + n});
  return first;
}

const Generator& default_generator() {
  static const Generator* g = new Generator(0);  // never destroyed: may be used by late destructors
  return *g;
}
void manual_seed(uint64_t seed) { default_generator().manual_seed(seed); }

}  // namespace ingot
