// Running: everything that can fail on the host (tracing, compiling, memory) happens before the
// first launch; until then all nodes stay pending. After the run the outputs are leaves, and what
// only they needed is released.
#include "compile/executor.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <memory>
#include <mutex>
#include <new>
#include <unordered_map>

#include "base/env.h"
#include "base/fork.h"
#include "base/thread.h"
#include "compile/capture.h"
#include "compile/describe.h"
#include "compile/launch_times.h"
#include "compile/plan_cache.h"
#include "compile/publish.h"
#include "graph/handle.h"
#include "graph/recorder.h"
#include "ingot/runtime.h"
#include "runtime/storage.h"

namespace ingot {
namespace {

std::atomic<bool> tf32{false};
std::atomic<bool> fusion{env::flag("INGOT_FUSE")};
std::atomic<int64_t> compiled_plans{0}, plan_runs{0};

// Behind aliases and reshapes of whole buffers lies the node that has (or will have) the buffer.
Node* behind(Node* n) {
  while (!n->computed.load(std::memory_order_acquire) &&
         (n->op == Op::Alias || n->op == Op::Reshape || n->op == Op::Fence))
    n = n->in[0];
  return n;
}

[[noreturn]] void throw_again(Node* n) {
  throw Error(ErrorKind::State, info(n->op).name,
              "the value was not computed because an earlier run failed: " + *failure_of(*n),
              n->loc);
}

// Runs that a device has not answered for yet. Their errors are raised at the next synchronisation.
struct Watched {
  Device device;
  uint64_t ticket;
  std::vector<CheckSite> sites;
  RunStatus status;
  bool answered = false;

  bool ask(bool wait) {
    if (!answered)
      answered = backend_for(device.type())->poll(device.index(), ticket, wait, status);
    return answered;
  }
};
struct Watch {
  ForkMutex<ForkOrder::Plans> mutex;
  std::vector<Watched> runs;
};
Watch& watch() {
  static Watch* w = new Watch;
  return *w;
}

Check check_of(const Node& n) {
  if (n.op == Op::Scatter) return n.attrs.as<ScatterAttrs>().check;
  return n.attrs.is<IndexAttrs>() ? n.attrs.as<IndexAttrs>().check : Check::None;
}

std::vector<CheckSite> sites_of(const Plan& p, const Trace& t) {
  std::vector<CheckSite> sites;
  for (int n : p.sites)
    sites.push_back({n, t.nodes[n]->loc, info(t.nodes[n]->op).name, check_of(*t.nodes[n])});
  return sites;
}

void watch_run(Device d, uint64_t ticket, std::vector<CheckSite> sites) {
  Watched w{d, ticket, std::move(sites), {}, false};
  std::lock_guard lock(watch().mutex);
  // A loop that never asks for a value must not pile them up.
  if (watch().runs.size() >= 32)
    std::erase_if(watch().runs, [](Watched& r) { return r.ask(false) && !r.status.code; });
  watch().runs.push_back(std::move(w));
}

// extent: which column or minor, and the LinalgKind.
Error unsolvable(const RunStatus& s, const SourceLoc& loc) {
  static const char* const names[] = {"solve", "solve_triangular", "inv", "cholesky", "slogdet"};
  LinalgKind kind = static_cast<LinalgKind>(s.extent >> 32);
  std::string which = "matrix " + std::to_string(s.value),
              at = std::to_string(s.extent & 0xffffffff);
  if (kind == LinalgKind::Cholesky)
    return Error(ErrorKind::Value, names[3],
                 which + " is not positive definite: its leading minor of order " + at + " is not",
                 loc,
                 "it must be symmetric with positive eigenvalues; add a small multiple of eye(n)");
  return Error(ErrorKind::Value, names[static_cast<int>(kind)],
               which + " is singular: pivot " + at + " is 0", loc,
               "check for equal or dependent rows");
}

Error run_error(const RunStatus& s, Check check, const char* op, const SourceLoc& loc) {
  if (s.code == RunStatus::Unsolvable) return unsolvable(s, loc);
  return failed_check(check, op, s.value, s.extent, loc);
}

Error index_error(const RunStatus& s, const std::vector<CheckSite>& sites) {
  for (const CheckSite& c : sites)
    if (c.node == s.site) return run_error(s, c.check, c.op, c.loc);
  return run_error(s, Check::None, "run", {});
}

// Binds a plan to buffers and hands it to the devices.
class Run {
 public:
  Run(const Plan& p, std::span<Storage* const> leaves, std::span<const Ref<Storage>> outputs)
      : p_(p), leaves_(leaves), outputs_(outputs) {}

  /// Tickets of the runs that devices have not answered for are appended to `tickets`. What it
  /// throws before has_overwritten() has left every value as it was.
  RunStatus operator()(RunArgs args, std::vector<std::pair<Device, uint64_t>>& tickets) {
    // Every plan takes the arenas in one order (PlanArena's), so that two runs never wait for each
    // other.
    std::vector<std::unique_ptr<ArenaLease>> leases;
    std::vector<char*> arena;
    for (const PlanArena& a : p_.arenas) {
      leases.push_back(std::make_unique<ArenaLease>(a.device, a.bytes));
      arena.push_back(static_cast<char*>(leases.back()->data()));
    }
    repeated_ = args.captured;
    RunStatus status;
    args.status = &status;
    if (is_dry_run()) return status;
    bind(arena);
    // Steps on one device in a row are handed over together; copies between devices stand between.
    for (size_t s = 0; s < p_.steps.size();) {
      if (p_.steps[s].kind == Step::Copy) {
        overwrites_ = overwrites_ || overwrites(p_.steps[s]);
        timed_copy(s);
        ++s;
        continue;
      }
      size_t e = s;
      Device d = p_.steps[s].device;
      while (e < p_.steps.size() && p_.steps[e].kind != Step::Copy && p_.steps[e].device == d) ++e;
      if (backend_for(d.type())->host_visible()) e = before_overwriting(s, e);
      if (launches_are_timed()) {
        timed_steps(s, e, args);
        s = e;
        continue;
      }
      if (backend_for(d.type())->host_visible()) ask(tickets, status);
      auto before =
          std::find_if(tickets.begin(), tickets.end(), [&](const auto& t) { return t.first == d; });
      args.continues = before != tickets.end();
      uint64_t ticket = backend_for(d.type())->run(
          d.index(), p_.id * kPartsOfPlan + s % kPartsOfPlan, {&items_[s], e - s}, args);
      // The last part of a run on a device answers for those before it.
      if (args.continues) before->second = ticket;
      if (ticket && !args.continues) tickets.emplace_back(d, ticket);
      s = e;
    }
    if (status.code) {  // it is raised at once, and not again later
      ask(tickets, status);
      tickets.clear();
    }
    return status;
  }

  /// Has a step begun that writes to a leaf's own buffer?
  bool has_overwritten() const { return overwrites_; }

 private:
  bool overwrites(const Step& s) const {
    return std::any_of(s.buffers.begin(), s.buffers.end(), [&](const Binding& b) {
      // A captured call keeps the buffers of what it assigned the first time, and writes to them
      // again.
      return b.place == Binding::Output &&
             (p_.outputs[b.index].donated >= 0 || (repeated_ && outputs_[b.index]->captured));
    });
  }
  // Where the steps from s on that leave all leaves as they are end; all of them once one does not.
  size_t before_overwriting(size_t s, size_t e) {
    if (overwrites_ || (overwrites_ = overwrites(p_.steps[s]))) return e;
    size_t at = s;
    while (at < e && !overwrites(p_.steps[at])) ++at;
    return at;
  }

  // What other devices have failed at so far must be known to one that computes at once: it would
  // assign.
  void ask(const std::vector<std::pair<Device, uint64_t>>& tickets, RunStatus& status) const {
    if (p_.sites.empty()) return;
    for (const auto& [d, ticket] : tickets) {
      RunStatus other;
      if (backend_for(d.type())->poll(d.index(), ticket, true, other) && other.code && !status.code)
        status = other;
    }
  }

  // Each step's time beside what its bytes and flops should take: INGOT_DEBUG=time, Profile.
  void timed_steps(size_t begin, size_t end, const RunArgs& args) {
    Device d = p_.steps[begin].device;
    Backend* b = backend_for(d.type());
    std::vector<double> us;
    b->synchronize(d.index());
    const double start = clock_us();
    if (!b->run_timed(d.index(), {&items_[begin], end - begin}, args, us))
      for (size_t s = begin; s < end; ++s) {
        const double before = clock_us();
        b->launch(d.index(), *p_.steps[s].exe, items_[s].buffers, items_[s].scratch, args);
        b->synchronize(d.index());
        us.push_back(clock_us() - before);
      }
    tell_launch_times({&p_.steps[begin], end - begin}, start, us);
  }

  void timed_copy(size_t s) {
    const double start = clock_us();
    copy(p_.steps[s], items_[s].buffers);
    if (launches_are_timed()) tell_launch_times({&p_.steps[s], 1}, start, {clock_us() - start});
  }

  void* address(const Binding& b, const std::vector<char*>& arena) const {
    switch (b.place) {
      case Binding::Arena:
        return arena[b.index] + b.offset;
      case Binding::Leaf:
        return leaves_[b.index]->data;
      case Binding::Output:
        return outputs_[b.index]->data;
    }
    return nullptr;
  }

  void bind(const std::vector<char*>& arena) {
    size_t n = 0;
    for (const Step& s : p_.steps) n += s.buffers.size();
    addresses_.resize(n);
    items_.resize(p_.steps.size());
    void** at = addresses_.data();
    for (size_t i = 0; i < p_.steps.size(); ++i) {
      const Step& s = p_.steps[i];
      items_[i] = {s.exe.get(), at, static_cast<int>(s.buffers.size()), nullptr};
      for (const Binding& b : s.buffers) *at++ = address(b, arena);
      if (s.exe && s.exe->scratch_bytes)
        for (size_t a = 0; a < p_.arenas.size(); ++a)
          if (p_.arenas[a].device == s.device) items_[i].scratch = arena[a] + s.scratch;
    }
  }

  static void copy(const Step& s, void* const* at) {
    Backend *to = backend_for(s.device.type()), *from = backend_for(s.from.type());
    if (to == from && (s.device == s.from || to->host_visible()))
      to->copy_on_device(s.device.index(), at[0], at[1], s.bytes);
    else if (from->host_visible())
      to->copy_from_host(s.device.index(), at[0], at[1], s.bytes);
    else
      from->copy_to_host(s.from.index(), at[0], at[1], s.bytes);
  }

  const Plan& p_;
  std::span<Storage* const> leaves_;
  std::span<const Ref<Storage>> outputs_;
  std::vector<void*> addresses_;
  std::vector<LaunchItem> items_;
  bool overwrites_ = false, repeated_ = false;
};

RunArgs args_of(const Trace& t) {
  return {t.args.data(),
          t.seeds.data(),
          t.offsets.data(),
          nullptr,
          static_cast<int>(t.args.size()),
          static_cast<int>(t.seeds.size())};
}

Error failure_of(const RunStatus& status, const Trace& t) {
  const Node* site = status.site >= 0 ? t.nodes[status.site] : nullptr;
  return run_error(status, site ? check_of(*site) : Check::None, site ? info(site->op).name : "run",
                   site ? site->loc : SourceLoc{});
}

// A run that a capture keeps.
CapturedRun captured_run(const Trace& t, const std::shared_ptr<Plan>& plan,
                         std::span<Storage* const> leaves, const std::vector<Ref<Storage>>& out) {
  CapturedRun r{plan,
                {},
                {},
                out,
                {t.leaves.begin(), t.leaves.end()},
                {},
                t.args,
                {},
                t.seeds,
                t.offsets,
                sites_of(*plan, t)};
  for (Storage* l : leaves) r.leaves.emplace_back(l);
  for (const PlanOutput& o : plan->outputs)
    for (size_t i = 0; o.assign && o.donated < 0 && i < t.leaves.size(); ++i)
      if (t.nodes[o.node]->in[0] == t.leaves[i]) r.copied.push_back(static_cast<int>(i));
  for (Node* n : t.nodes)
    if (n->op == Op::Arg) r.arg_sources.push_back(n->attrs.as<ArgAttrs>().source);
  return r;
}
void count_captured(CapturedRun& r, int by) {
  for (auto* list : {&r.leaves, &r.outputs})
    for (Ref<Storage>& s : *list) s->captured += static_cast<uint32_t>(by);
}

void run_trace(const Trace& t, const std::shared_ptr<Plan>& plan, Recorder& rec) {
  std::vector<Ref<Storage>> out(plan->outputs.size());
  for (size_t i = 0; i < out.size(); ++i) {
    const PlanOutput& o = plan->outputs[i];
    out[i] = o.donated >= 0 ? t.leaves[o.donated]->storage
                            : allocate_storage(o.device, o.bytes, info(t.nodes[o.node]->op).name);
  }
  std::vector<Storage*> leaves(t.leaves.size());
  for (size_t i = 0; i < leaves.size(); ++i) leaves[i] = t.leaves[i]->storage.get();
  std::vector<std::pair<Device, uint64_t>> tickets;
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
  if (status.code) publish_failure(t, *plan, out, failure_of(status, t));
  publish(t, *plan, out, rec, done);
}

INGOT_THREAD_LOCAL int open_turns = 0;

// Holds the lock of a recorder. Who has one already waits for nobody's turn.
class Turn {
 public:
  explicit Turn(Recorder& rec) : rec_(rec) {
    let_forks_pass();
    if (&rec != &Recorder::current()) {
      rec.lock_as_guest();
    } else {
      if (!open_turns) rec.let_guests_pass();
      rec.run_mutex.lock();
    }
    ++open_turns;
  }
  ~Turn() {
    --open_turns;
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
    Node* b = behind(n);
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
    ++plan_runs;
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
  for (Node* n : asked) share_storage(n, behind(n));
}

void run_asked(Recorder& rec, std::span<Node* const> asked) {
  try {
    trace_and_run(rec, asked);
  } catch (const std::bad_alloc&) {
    throw OutOfMemory("the host has no memory left to plan or to start what was asked for", 0, 0,
                      0);
  }
}

}  // namespace

bool tf32_allowed() { return tf32.load(std::memory_order_relaxed); }
void set_matmul_precision(const std::string& precision, SourceLoc loc) {
  if (precision != "highest" && precision != "high")
    throw Error(ErrorKind::Value, "set_matmul_precision", "\"" + precision + "\" is no precision",
                user_loc(loc), "use \"highest\" or \"high\"");
  tf32 = precision == "high";
}
std::string get_matmul_precision() { return tf32_allowed() ? "high" : "highest"; }

bool fusion_enabled() { return fusion.load(std::memory_order_relaxed); }
void set_fusion(bool on) { fusion = on; }

PlanStats plan_stats() { return {compiled_plans, plan_runs}; }
std::shared_ptr<Plan> plan_for(const Trace& t) {
  if (auto found = find_plan(t.key)) return found;
  if (env::debug("graph")) std::fputs(dump(std::span<Node* const>(t.nodes)).c_str(), stderr);
  auto begin = std::chrono::steady_clock::now();
  CompileOptions o;
  o.fuse = fusion_enabled();
  o.tf32 = tf32_allowed();
  o.donated = t.donated;
  std::shared_ptr<Plan> plan = compile_plan(make_graph(t), o);
  plan->key = t.key;
  static std::atomic<uint64_t> next_id{1};
  plan->id = next_id++;
  ++compiled_plans;
  keep_plan(plan);
  if (env::debug("plan")) {
    double ms =
        std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
    const PlanCacheInfo kept = plan_cache_info();
    std::fprintf(stderr,
                 "[ingot plan] new plan: %zu nodes, %zu leaves -> %zu steps in %.2f ms, %.1f KiB "
                 "(%lld plans hold "
                 "%.1f of %.0f MiB); %s\n",
                 t.nodes.size(), t.leaves.size(), plan->steps.size(), ms,
                 static_cast<double>(plan->bytes) / 1024, static_cast<long long>(kept.plans),
                 static_cast<double>(kept.bytes) / (1 << 20),
                 static_cast<double>(kept.limit) / (1 << 20), what_differs(t.key).c_str());
  }
  if (env::debug("fuse") || env::debug("kernels") || env::debug("memory"))
    std::fputs(describe_plan(*plan, t, env::debug("kernels"), env::debug("memory")).c_str(),
               stderr);
  return plan;
}

bool has_attention(const Node& q, const Node& k, const Node& v, const Node* bias, bool causal,
                   double scale) {
  Backend* b = backend_for(q.device.type());
  // Op by op, the call would run before its other results are asked for.
  if (!b || is_eager()) return false;
  LibrarySpec s;
  s.op = Op::Attention;
  s.attrs = AttentionAttrs{causal ? AttentionMask::Causal : AttentionMask::None, scale};
  s.written = 2;
  s.results = 3;
  Dims o = q.shape;
  o[3] = v.shape[3];
  Dims lse{o[0], o[1], o[2]};
  s.operands = {{q.dtype, o, row_major(o), 0}, {DType::Float32, lse, row_major(lse), 0}};
  for (const Node* n : {&q, &k, &v, bias})
    if (n) s.operands.push_back({n->dtype, n->shape, row_major(n->shape), 0});
  if (!b->best_offer(s)) return false;
  if (!q.requires_grad && !k.requires_grad && !v.requires_grad) return true;
  LibrarySpec g = s;
  g.op = Op::AttentionGrad;
  g.written = 3;
  g.results = 7;
  const auto& x = s.operands;  // o, lse, q, k, v, (bias)
  g.operands = {x[2], x[3], x[4], x[2], x[3], x[4], x[0], x[0], x[1]};
  if (bias) g.operands.push_back(x[5]);
  return static_cast<bool>(b->best_offer(g));
}

bool has_lstm(const Node& z, const Node& weight) {
  Backend* b = backend_for(z.device.type());
  if (!b || is_eager() || !is_float(z.dtype) || z.dtype == DType::Float64 || z.rank() != 3 ||
      z.numel() == 0)
    return false;
  const DType wide = DType::Float32;
  const Dims h{z.shape[0], z.shape[1], weight.shape[1]}, one{h[1], h[2]};
  LibrarySpec s;
  s.op = Op::Lstm;
  s.attrs = RecurrentAttrs{};
  s.written = 3;
  s.results = 7;
  auto add = [&](DType t, const Dims& shape) {
    s.operands.push_back({t, shape, row_major(shape), 0});
  };
  add(z.dtype, h);
  add(z.dtype, z.shape);
  add(wide, h);
  add(z.dtype, z.shape);
  add(z.dtype, one);
  add(wide, one);
  add(z.dtype, weight.shape);
  return static_cast<bool>(b->best_offer(s));
}

bool has_cached_attention(std::span<Node* const> in, double scale) {
  const Node& q = *in[0];
  Backend* b = backend_for(q.device.type());
  if (!b || q.device.type() == DeviceType::Null || is_eager()) return false;
  LibrarySpec s;
  s.op = Op::Attention;
  s.attrs = AttentionAttrs{AttentionMask::Newest, scale};
  s.operands = {{q.dtype, q.shape, row_major(q.shape), 0}};
  for (const Node* n : in) s.operands.push_back({n->dtype, n->shape, row_major(n->shape), 0});
  return static_cast<bool>(b->best_offer(s));
}

void materialise(std::span<Node* const> nodes, const SourceLoc&) {
  // Nodes are run by the thread that recorded them, or under its lock. What a pending node reads is
  // its thread's too, or computed.
  Recorder& mine = Recorder::current();
  std::vector<Node*> own;
  for (Node* n : nodes) {
    if (n->computed.load(std::memory_order_acquire)) continue;
    if (!n->recorder || n->recorder == &mine)
      own.push_back(n);
    else
      run_asked(*n->recorder, std::span<Node* const>(&n, 1));
  }
  if (nodes.empty() || !own.empty()) run_asked(mine, own);  // nothing by name: whatever is pending
}

void flush_if_due(Recorder& r) {
  r.segment_open = false;
  r.leaf_bytes = 0;
  if (r.size()) run_asked(r, {});
}

void run_captured(const CapturedRun& r, const Plan& plan, std::span<const Ref<Storage>> leaves,
                  std::span<const Ref<Storage>> outputs, std::span<const double> args,
                  std::span<const uint64_t> seeds, std::span<const uint64_t> offsets) {
  std::vector<Storage*> in;
  for (const Ref<Storage>& l : leaves) in.push_back(l.get());
  RunArgs a{args.data(),
            seeds.data(),
            offsets.data(),
            nullptr,
            static_cast<int>(args.size()),
            static_cast<int>(seeds.size()),
            true};
  std::vector<std::pair<Device, uint64_t>> tickets;
  ++plan_runs;
  Run run(plan, in, outputs);
  RunStatus status;
  try {
    status = run(a, tickets);
  } catch (const OutOfMemory& e) {
    if (!run.has_overwritten()) throw;
    throw OutOfMemory(e.reason() +
                          "; the captured call was updating tensors in place and stopped half-way: "
                          "what it assigns must be restored, from a checkpoint for example",
                      e.requested, e.in_use, e.limit);
  }
  for (auto& [d, ticket] : tickets) watch_run(d, ticket, r.sites);
  if (status.code) throw index_error(status, r.sites);
}

void check_runs(Device device, bool wait) {
  Watch& w = watch();
  std::lock_guard lock(w.mutex);
  for (size_t i = 0; i < w.runs.size();) {
    if (w.runs[i].device != device || !w.runs[i].ask(wait)) {
      ++i;
      continue;
    }
    Watched done = std::move(w.runs[i]);
    w.runs.erase(w.runs.begin() + static_cast<int64_t>(i));
    if (done.status.code) throw index_error(done.status, done.sites);
  }
}

void run_pending() { run_asked(Recorder::current(), {}); }

}  // namespace ingot
