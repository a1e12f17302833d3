// Running: everything that can fail on the host (tracing, compiling, memory) happens before the
// first launch; until then all nodes stay pending. After the run the outputs are leaves, and what
// only they needed is released.
#include "compile/executor.h"

#include <chrono>
#include <cstdio>
#include <memory>
#include <new>

#include "base/env.h"
#include "base/fork.h"
#include "compile/capture.h"
#include "compile/launch_times.h"
#include "compile/publish.h"
#include "compile/run.h"
#include "compile/watch.h"
#include "graph/recorder.h"
#include "graph/thread_state.h"

namespace ingot {
namespace {

// The node that has (or will have) the buffer, found through aliases and reshapes of all of it.
Node* buffer_owner(Node* n) {
  while (!n->computed.load(std::memory_order_acquire) &&
         (n->op == Op::Alias || n->op == Op::Reshape || n->op == Op::Fence))
    n = n->in[0];
  return n;
}

[[noreturn]] void throw_again(Node* n) {
  throw Error(ErrorKind::State, name_of(n->op, n->attrs),
              "the value was not computed because an earlier run failed: " + *failure_of(*n),
              n->loc);
}

RunArgs args_of(const Trace& t) {
  return {t.args.data(),
          t.seeds.data(),
          t.offsets.data(),
          nullptr,
          static_cast<int>(t.args.size()),
          static_cast<int>(t.seeds.size())};
}

void run_trace(const Trace& t, const std::shared_ptr<Plan>& plan, Recorder& rec) {
  std::vector<Ref<Storage>> out(plan->outputs.size());
  for (size_t i = 0; i < out.size(); ++i) {
    const PlanOutput& o = plan->outputs[i];
    const Node& n = *t.nodes[o.node];
    out[i] = o.donated >= 0 ? t.leaves[o.donated]->storage
                            : allocate_storage(o.device, o.bytes, name_of(n.op, n.attrs).c_str());
  }
  std::vector<Storage*> leaves(t.leaves.size());
  for (size_t i = 0; i < leaves.size(); ++i) leaves[i] = t.leaves[i]->storage.get();
  Run::Tickets tickets;
  if (is_dry_run()) note_dry_run(*plan, t);
  std::vector<NodeRef> done;
  done.reserve(out.size());
  CaptureLog* log = capture_log();
  if (log) {
    log->runs.push_back(captured_run(t, plan, leaves, out));
    count_captured(log->runs.back(), 1);
  }
  Run run(*plan, leaves, out);
  RunStatus status;
  try {
    status = run(args_of(t), tickets);
  } catch (const std::exception& e) {
    if (run.has_overwritten()) publish_loss(t, *plan, e.what());
    if (log) {
      count_captured(log->runs.back(), -1);
      log->runs.pop_back();
    }
    throw;
  }
  for (auto& [d, ticket] : tickets) watch_run(d, ticket, sites_of(*plan, t));
  if (status.code) publish_failure(t, *plan, out, failure_of(status, sites_of(*plan, t)));
  publish(t, *plan, out, rec, done);
}

// Holds the lock of a recorder. Who has one already waits for nobody's turn.
class Turn {
 public:
  explicit Turn(Recorder& rec) : rec_(rec) {
    let_forks_pass();
    if (&rec != &Recorder::current()) {
      rec.lock_as_guest();
    } else {
      if (!this_thread.open_turns) rec.let_guests_pass();
      rec.run_mutex.lock();
    }
    ++this_thread.open_turns;
  }
  ~Turn() {
    --this_thread.open_turns;
    rec_.run_mutex.unlock();
  }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

 private:
  Recorder& rec_;
};

void trace_and_run(Recorder& rec, std::span<Node* const> asked) {
  const Turn turn(rec);
  rec.running = true;
  struct Done {
    Recorder& r;
    ~Done() { r.running = false; }
  } done{rec};
  std::vector<Node*> pending;
  for (Node* n : asked) {
    Node* b = buffer_owner(n);
    if (failure_of(*b)) throw_again(b);
    if (!b->computed.load(std::memory_order_acquire)) pending.push_back(b);
  }
  Trace t = make_trace(rec, pending, true);
  rec.segment_open = false;
  rec.leaf_bytes = 0;
  if (!t.nodes.empty()) {
    for (Node* n : t.nodes)
      if (failure_of(*n)) throw_again(n);
    std::shared_ptr<Plan> plan = plan_for(t);
    count_run();
    auto begin = std::chrono::steady_clock::now();
    run_trace(t, plan, rec);
    if (env::debug("time")) {
      double us =
          std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin)
              .count();
      std::fprintf(stderr, "[ingot time] %zu steps, %d launches: %.1f us\n", plan->steps.size(),
                   plan->launches, us);
    }
  }
  for (Node* n : asked) share_storage(n, buffer_owner(n));
}

void run_asked(Recorder& rec, std::span<Node* const> asked) {
  try {
    trace_and_run(rec, asked);
  } catch (const std::bad_alloc&) {
    throw OutOfMemory("the host has no memory left to plan or start the run", 0, 0, 0);
  }
}

class Executor final : public Engine {
 public:
  void run(std::span<Node* const> nodes) override {
    // Nodes are run by the thread that recorded them, or under its lock. What a pending node reads
    // is its thread's too, or computed.
    Recorder& mine = Recorder::current();
    std::vector<Node*> own;
    for (Node* n : nodes) {
      if (n->computed.load(std::memory_order_acquire)) continue;
      if (!n->recorder || n->recorder == &mine)
        own.push_back(n);
      else
        run_asked(*n->recorder, std::span<Node* const>(&n, 1));
    }
    if (nodes.empty() || !own.empty())
      run_asked(mine, own);  // nothing by name: whatever is pending
  }
  void run_pending() override { run_asked(Recorder::current(), {}); }
  void flush(Recorder& r) override {
    r.segment_open = false;
    r.leaf_bytes = 0;
    if (r.size()) run_asked(r, {});
  }
  void check(Device device, bool wait) override { check_watched(device, wait); }
};

}  // namespace

Engine& executor() {
  static Executor* e = new Executor;  // never destroyed: tensors may outlive main
  return *e;
}

}  // namespace ingot
