// What a thread's earlier lines say about its next ones: whether gradients are recorded, the device
// of new tensors, what is being captured. Every setting of a thread that changes what a line of the
// user's program does is a field here. Public scopes (NoGrad, amp::Autocast, DeviceScope, ...) set
// one field each; inside the library ThreadScope does.
//
// The user's line, which errors name, is base's (base/source.cpp): Error asks for it.
#pragma once
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/thread.h"
#include "graph/checks.h"
#include "graph/layer_log.h"
#include "graph/sync.h"
#include "ingot/dtype.h"

namespace ingot {

class Recorder;
struct CaptureLog;  // compile/capture.h
struct DryRunUses;  // compile/arena_use.cpp
struct Node;
struct Plan;
struct RandomUse;  // graph/random_uses.h
namespace nn {
struct CloneMap;
namespace detail {
class Call;
}
}  // namespace nn
namespace data {
class Random;
}

/// Constant-initialised and without a destructor, so that it is read without a call and stays valid
/// while a thread ends.
struct ThreadState {
  Recorder* recorder = nullptr;  // Recorder::current() makes one at its first use

  // How operations are recorded
  bool grad = true;                        // with history: NoGrad, EnableGrad
  bool recomputing = false;                // again, for a checkpoint: running statistics have moved
  bool aside = false;                      // for a decomposition: nothing runs
  bool autocast = false;                   // amp::Autocast ...
  DType autocast_type = DType::BFloat16;   // ... to this type
  Check check = Check::None;               // CheckScope
  int device = -1;                         // DeviceScope, packed (see default_device); -1: none
  const nn::detail::Call* call = nullptr;  // the innermost forward()
  nn::CloneMap* clones = nullptr;          // Module::clone(): copies of handles are others
  std::vector<RandomUse>* random_uses = nullptr;  // where draws are noted
  data::Random* sample_random = nullptr;          // data::RandomScope

  // How runs are carried out
  bool dry_run = false;           // planned only: DryRun
  CaptureLog* capture = nullptr;  // where runs are noted: capture()
  int open_turns = 0;             // locks of recorders that are held
  int leases_held = 0;            // arenas that are held

  // Nodes that are dead and whose inputs are still to be released, chained by Node::next
  Node* dying = nullptr;
  bool releasing = false;
};
extern constinit INGOT_THREAD_LOCAL ThreadState this_thread;

/// While one lives, a field of this thread's state has another value:
/// ThreadScope<&ThreadState::grad> off(false).
template <auto field>
class ThreadScope {
  using Value = std::remove_cvref_t<decltype(this_thread.*field)>;

 public:
  explicit ThreadScope(Value value) : previous_(std::exchange(this_thread.*field, value)) {}
  ~ThreadScope() { this_thread.*field = previous_; }
  ThreadScope(const ThreadScope&) = delete;
  ThreadScope& operator=(const ThreadScope&) = delete;

 private:
  Value previous_;
};

/// The part that takes memory, made at its first use and freed when the thread ends.
struct ThreadLists {
  LayerLog layers;
  std::vector<std::weak_ptr<SyncListener>> listeners;
  std::shared_ptr<DryRunUses> dry_runs;
  std::weak_ptr<Plan> last_plan;                // that this thread ran
  std::shared_ptr<data::Random> sample_random;  // outside of any RandomScope
};
ThreadLists& thread_lists();

}  // namespace ingot
