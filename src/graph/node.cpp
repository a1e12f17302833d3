// Allocation, reference counts and recording of nodes. Blocks come from a per-thread free list
// (slabs of 64), and releasing the last reference works off an explicit stack, so that a chain of a
// million nodes does not recurse.
#include "graph/node.h"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <new>
#include <thread>
#include <utility>
#include <vector>

#include "base/thread.h"
#include "graph/cell.h"
#include "graph/handle.h"
#include "graph/layer_log.h"
#include "graph/leaf.h"
#include "graph/recorder.h"
#include "graph/storage.h"
#include "graph/thread_state.h"

namespace ingot {
namespace {

// A free list per thread and type. Blocks freed by another thread than the allocating one simply
// change lists. The first bytes of a free block stay as they are: a node's counts, which are read
// even then.
template <class T>
class Slab {
 public:
  void* take() {
    if (!free_) refill();
    Block* b = free_;
    free_ = b->next;
    return b;
  }
  void give(void* p) {
    Block* b = static_cast<Block*>(p);
    b->next = free_;
    free_ = b;
  }
  /// A thread that ends leaves its free blocks to the others.
  void leave() {
    if (!free_) return;
    Block* last = free_;
    while (last->next) last = last->next;
    Left& l = left();
    std::lock_guard lock(l.mutex);
    last->next = l.free;
    l.free = std::exchange(free_, nullptr);
  }

 private:
  struct Block {
    NodeCounts kept;
    Block* next;
  };
  struct Left {
    ForkMutex<ForkOrder::Small> mutex;
    Block* free = nullptr;
  };
  static Left& left() {
    static Left* l = new Left;  // never destroyed: threads may end late
    return *l;
  }
  static constexpr size_t kBlocks = 64;
  void refill() {
    thread_local struct AtExit {
      Slab* slab = nullptr;
      ~AtExit() { slab->leave(); }
    } at_exit;
    at_exit.slab = this;
    {
      std::lock_guard lock(left().mutex);
      free_ = std::exchange(left().free, nullptr);
    }
    if (free_) return;
    // Slabs are never returned to the system: they hold blocks that any thread may have on its
    // list.
    auto* blocks = static_cast<char*>(::operator new (sizeof(T) * kBlocks, std::align_val_t{64}));
    for (size_t i = 0; i < kBlocks; ++i) {
      void* block = blocks + i * sizeof(T);
      if constexpr (std::is_base_of_v<NodeCounts, T>) new (block) NodeCounts;
      give(block);
    }
  }
  Block* free_ = nullptr;
};

// Plain pointers in thread-local storage: nothing is destroyed at thread exit, so late releases
// stay valid.
template <class T>
Slab<T>& slab() {
  static INGOT_THREAD_LOCAL Slab<T> s;
  return s;
}

std::atomic<uint64_t> next_seq{1};

void destroy(Node* n) {
  for (Node* i : n->inputs())
    if (i) release(i);
  if (n->in != n->few) delete[] n->in;
  n->NodeState::~NodeState();
  slab<Node>().give(n);
}

// The counts are those of the node before: 0, and whoever still looks at them may not see them made
// anew.
NodeRef new_node() {
  Node* n = static_cast<Node*>(slab<Node>().take());
  new (static_cast<NodeState*>(n)) NodeState;
  n->handles.store(0, std::memory_order_relaxed);
  n->refs.store(1, std::memory_order_release);
  return NodeRef::adopt(n);
}

[[noreturn]] void throw_failed(const std::string& op, const Node& n, const SourceLoc& loc) {
  throw Error(ErrorKind::State, op,
              "its operand " + describe(n) +
                  " was not computed because an earlier run failed: " + *failure_of(n),
              loc);
}

// What another thread recorded and did not run yet is run now, under that thread's lock.
void run_foreign(std::span<Node* const> inputs, const Recorder& mine, const SourceLoc& loc) {
  for (Node* i : inputs)
    if (i->recorder && i->recorder != &mine && !i->computed.load(std::memory_order_acquire))
      materialise(std::span<Node* const>(&i, 1), loc);
}

void await_leaves(std::span<Node* const> inputs, Recorder& rec) {
  for (Node* i : inputs)
    if (i->op == Op::Leaf && !i->awaited.exchange(true, std::memory_order_relaxed))
      rec.leaf_bytes.fetch_add(i->bytes(), std::memory_order_relaxed);
}

bool differentiable(Op op, DType result) { return is_float(result) && info(op).differentiable; }

}  // namespace

// Dead nodes wait in a chain for their turn: releasing must neither recurse nor need memory.
void destroy_node(Node* n) {
  ThreadState& t = this_thread;
  if (n->linked) n->recorder->unlink(n);
  n->next = t.dying;
  t.dying = n;
  if (t.releasing) return;
  t.releasing = true;
  while (t.dying) destroy(std::exchange(t.dying, t.dying->next));
  t.releasing = false;
}

void retain(LeafMeta* m) { m->refs.fetch_add(1, std::memory_order_relaxed); }
void release(LeafMeta* m) {
  if (m->refs.fetch_sub(1, std::memory_order_acq_rel) == 1) delete m;
}

NodeRef record_list(Op op, std::span<Node* const> inputs, const OpSpec& spec,
                    const SourceLoc& loc) {
  std::vector<NodeRef> held(inputs.begin(), inputs.end());
  return record_taking(op, held, spec, loc);
}

NodeRef record_taking(Op op, std::span<NodeRef> held, const OpSpec& spec, const SourceLoc& loc) {
  // References side by side are pointers side by side.
  const std::span<Node* const> inputs{reinterpret_cast<Node* const*>(held.data()), held.size()};
  Recorder& rec = Recorder::current();
  bool needs_grad = false, foreign = false, fresh = false;
  for (Node* i : inputs) {
    if (failure_of(*i)) throw_failed(name_of(op, spec.attrs), *i, loc);
    needs_grad = needs_grad || i->requires_grad;
    foreign = foreign || (i->recorder && i->recorder != &rec);
    fresh = fresh || (i->op == Op::Leaf && !i->awaited.load(std::memory_order_relaxed));
  }
  Inferred r = infer(op, inputs, spec, loc);
  needs_grad = needs_grad && this_thread.grad && differentiable(op, r.dtype);
  if (foreign) run_foreign(inputs, rec, loc);
  if (fresh) await_leaves(inputs, rec);
  if (!rec.running.load(std::memory_order_relaxed) &&
      ((needs_grad && rec.segment_open.load(std::memory_order_relaxed)) || rec.is_full()))
    flush_if_due(rec);

  NodeRef made = new_node();
  Node* n = made.get();
  n->op = op;
  n->dtype = r.dtype;
  n->shape = r.shape;
  n->device = r.device;
  n->loc = loc;
  n->requires_grad = needs_grad;
  n->attrs = spec.attrs;
  n->seq = next_seq.fetch_add(1, std::memory_order_relaxed);
  if (inputs.size() > 3) n->in = new Node*[inputs.size()];
  // Nothing fails from here on: a node that is destroyed before would release inputs that it does
  // not own.
  n->n_inputs.store(static_cast<uint16_t>(inputs.size()), std::memory_order_relaxed);
  for (size_t i = 0; i < held.size(); ++i) n->in[i] = held[i].leak();
  n->recorder = &rec;
  rec.link(n);
  return made;
}

bool hold_inputs(const Node& n, std::vector<NodeRef>& held) {
  held.clear();
  const size_t count = n.n_inputs.load(std::memory_order_acquire);
  held.reserve(count);
  for (size_t k = 0; k < count && try_retain(n.in[k]); ++k) held.push_back(NodeRef::adopt(n.in[k]));
  // They are released after the number of them is 0.
  if (n.n_inputs.load(std::memory_order_acquire) != count) held.clear();
  return !held.empty();
}

NodeRef held_input(const Node& n, int k) {
  if (k >= n.n_inputs.load(std::memory_order_acquire) || !try_retain(n.in[k])) return {};
  NodeRef held = NodeRef::adopt(n.in[k]);
  return k < n.n_inputs.load(std::memory_order_acquire) ? held : NodeRef();
}

void set_failure(Node* n, const std::shared_ptr<const std::string>& why) {
  NodeExt& e = n->extra();
  std::lock_guard lock(side_mutex(&e));
  if (e.failed.load(std::memory_order_relaxed)) return;
  e.error = why;
  e.failed.store(true, std::memory_order_release);
}

std::shared_ptr<CustomBackward> custom_of(const Node& n) {
  NodeExt* e = n.ext.get();
  if (!e || (n.op != Op::Alias && n.op != Op::Assign)) return nullptr;
  std::lock_guard lock(side_mutex(e));
  return e->custom;
}

NodeRef record_argument(double value, DType dtype, Device device, const SourceLoc& loc) {
  return record(Op::Arg, {}, {.attrs = ArgAttrs{value, nullptr}, .dtype = dtype, .device = device},
                loc);
}
NodeRef record_argument(const std::shared_ptr<const double>& source, DType dtype, Device device,
                        const SourceLoc& loc) {
  return record(Op::Arg, {}, {.attrs = ArgAttrs{*source, source}, .dtype = dtype, .device = device},
                loc);
}

uint64_t next_node_number() { return next_seq.load(std::memory_order_relaxed); }

NodeRef make_leaf(Ref<Storage> storage, DType dtype, const Dims& shape, Device device) {
  NodeRef n = new_node();
  n->op = Op::Leaf;
  n->dtype = dtype;
  n->shape = shape;
  n->device = device;
  n->storage = std::move(storage);
  n->seq = next_seq.fetch_add(1, std::memory_order_relaxed);
  n->computed.store(true, std::memory_order_release);
  return n;
}

void drop_inputs(Node* n) {
  if (!n->computed.load(std::memory_order_acquire)) return;
  if (n->requires_grad && !n->freed_history && !n->leaf)
    return;  // a leaf ends the walk: nothing is asked through it
  // The thread that ran the node and the one that freed its history may both come here: one of them
  // does it.
  int count = n->n_inputs.exchange(0);
  for (int i = 0; i < count; ++i) release(n->in[i]);
}

// --- Recorder
// ---------------------------------------------------------------------------------------------------

namespace {

// All recorders there are. A thread that ends leaves its own to a later one, as soon as nothing is
// pending in it: nodes name it without counting.
struct Recorders {
  ForkMutex<ForkOrder::Recorders> mutex;
  std::vector<Recorder*> all, left;

  Recorder* take() {
    std::lock_guard lock(mutex);
    for (Recorder*& r : left)
      if (r->size() == 0) {
        std::swap(r, left.back());
        Recorder* found = left.back();
        left.pop_back();
        found->segment_open = false;
        found->leaf_bytes = 0;
        return found;
      }
    left.reserve(all.size() + 1);  // leave() comes at a thread's end and cannot fail
    all.reserve(all.size() + 1);
    return all.emplace_back(new Recorder);
  }
  void leave(Recorder* r) {
    std::lock_guard lock(mutex);
    left.push_back(r);
  }
};
Recorders& recorders() {
  static Recorders* r = new Recorders;  // never destroyed: threads may end late
  return *r;
}

Recorder& take_recorder() {
  thread_local struct AtExit {
    bool here = false;
    ~AtExit() {
      if (this_thread.recorder) recorders().leave(std::exchange(this_thread.recorder, nullptr));
    }
  } at_exit;
  at_exit.here = true;
  this_thread.recorder = recorders().take();
  return *this_thread.recorder;
}

}  // namespace

Recorder& take_side_recorder() { return *recorders().take(); }
void leave_side_recorder(Recorder& r) { recorders().leave(&r); }

// Never destroyed.
Recorder::Recorder() {
  add_fork_lock({ForkOrder::Lists, this,
                 [](void* r, const timespec&) {
                   static_cast<Recorder*>(r)->list_lock.lock();
                   return true;
                 },
                 [](void* r) { static_cast<Recorder*>(r)->list_lock.unlock(); },
                 [](void* r) {
                   static_cast<Recorder*>(r)->list_lock.unlock();
                   static_cast<Recorder*>(r)->guests_ = 0;  // they are threads of the parent
                 }});
}

void Recorder::lock_as_guest() {
  ++guests_;
  run_mutex.lock();
  --guests_;
  ++received_;
}

// Not for long: a guest may itself wait for a processor.
void Recorder::let_guests_pass() const {
  const uint64_t before = received_.load();
  for (int i = 0; i < 1000 && guests_.load() > 0 && received_.load() == before; ++i)
    std::this_thread::yield();
}

Recorder& Recorder::current() {
  return this_thread.recorder ? *this_thread.recorder : take_recorder();
}

void Recorder::link(Node* n) {
  n->linked = true;
  list_lock.lock();
  n->prev = tail;
  n->next = nullptr;
  (tail ? tail->next : head) = n;
  tail = n;
  count_.store(count_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  list_lock.unlock();
}

void Recorder::unlink(Node* n) {
  std::lock_guard lock(list_lock);
  unlink_locked(n);
}

void Recorder::unlink_locked(Node* n) {
  if (!n->linked) return;
  n->linked = false;
  (n->prev ? n->prev->next : head) = n->next;
  (n->next ? n->next->prev : tail) = n->prev;
  n->prev = n->next = nullptr;
  count_.store(count_.load(std::memory_order_relaxed) - 1, std::memory_order_relaxed);
}

// --- Cells
// ------------------------------------------------------------------------------------------------------

namespace {

// A few mutexes for all: one in each node or cell would cost more than the rare wait.
std::mutex& one_of_many(const void* of) {
  static auto* mutexes =
      new ForkMutex<ForkOrder::Small>[16];  // never destroyed: threads may end late
  return mutexes[reinterpret_cast<uintptr_t>(of) / 64 % 16];
}

// Counts the writes to cells that have views. A view compares its bases only when there was one.
std::atomic<uint64_t> viewed_writes{0};

// One handle less. The gradient a non-leaf keeps (hook number 0) leads back to it: without a handle
// nobody can ask for it, and the circle is cut.
void unname(Node* n) {
  // With no other reference there is no other handle, nor can one come.
  if (n->refs.load(std::memory_order_acquire) == 1)
    n->handles.store(0, std::memory_order_relaxed);
  else if (n->handles.fetch_sub(1, std::memory_order_acq_rel) != 1)
    return;
  NodeExt* ext = n->ext.get();
  if (!ext || !ext->hooked) return;
  HookList dropped;  // released when the lock is
  std::lock_guard lock(side_mutex(ext));
  auto kept = std::stable_partition(ext->hooks.begin(), ext->hooks.end(),
                                    [](const auto& hook) { return hook.first != 0; });
  dropped.assign(std::make_move_iterator(kept), std::make_move_iterator(ext->hooks.end()));
  ext->hooks.erase(kept, ext->hooks.end());
}

}  // namespace

std::mutex& side_mutex(const void* of) { return one_of_many(of); }
static std::mutex& view_mutex(const Cell* of) { return one_of_many(of); }

void retain(Cell* c) { c->refs.fetch_add(1, std::memory_order_relaxed); }

// Nobody can ask for the gradient any more. A pending one leads back to its leaf: a circle that
// would never be released.
static void forget_gradient(LeafMeta& meta) {
  CellRef grad;
  std::lock_guard lock(side_mutex(&meta));
  meta.named = false;
  grad = std::exchange(meta.grad, CellRef());
}

// A view of a view of ... is released without recursion.
void release(Cell* c) {
  while (c) {
    if (c->refs.load(std::memory_order_acquire) != 1 &&
        c->refs.fetch_sub(1, std::memory_order_acq_rel) != 1)
      return;
    unname(c->node_.load(std::memory_order_relaxed));
    if (c->meta) forget_gradient(*c->meta);
    Cell* base = c->base_.leak();
    c->~Cell();
    slab<Cell>().give(c);
    c = base;
  }
}

void Cell::written() {
  if (viewed_.load()) viewed_writes.fetch_add(1, std::memory_order_release);
}

// In this order: a view that is made meanwhile sees the new node, or is seen here.
void Cell::swap_in(NodeRef n) {
  n->handles.fetch_add(1, std::memory_order_relaxed);
  NodeRef old = NodeRef::adopt(node_.exchange(n.leak()));
  unname(old);
  written();
}

bool Cell::rebind_if(const NodeRef& expected, const NodeRef& n) {
  Node* found = expected;
  n->handles.fetch_add(1, std::memory_order_relaxed);
  retain(n);
  if (!node_.compare_exchange_strong(found, n)) {
    n->handles.fetch_sub(1, std::memory_order_relaxed);
    release(n);
    return false;
  }
  NodeRef old = NodeRef::adopt(found);
  unname(old);
  written();
  return true;
}

void rebind_leaf(Cell& cell, NodeRef value) {
  become_leaf_of(cell, *value);
  cell.rebind(std::move(value));
}

void become_leaf_of(const Cell& cell, Node& value) {
  if (LeafMeta* meta = cell.meta.get()) {
    value.leaf.set(Ref<LeafMeta>(meta));
    value.requires_grad = meta->requires_grad;
  } else {
    value.requires_grad = false;
  }
  value.freed_history =
      true;  // nothing is asked through a leaf: once computed it may let its inputs go
}

void Cell::become_view(Cell& of, NodeRef from, NodeRef via) {
  if (!of.viewed_.load()) of.viewed_.store(true);
  const uint64_t writes = viewed_writes.load(std::memory_order_acquire);
  // What was written to the base since it was read is found when the view is.
  const bool same = of.node_.load() == from;
  const uint64_t base_checked = of.is_view_.load() ? of.checked_.load() : writes;
  checked_ = same ? base_checked : ~uint64_t{0};
  base_ = CellRef(&of);
  base_node_ = std::move(from);
  via_ = std::move(via);
  is_view_ = true;
}

void Cell::leave_base() {
  ViewState dropped;  // released when the lock is
  std::lock_guard lock(view_mutex(this));
  is_view_ = false;
  dropped.base = std::exchange(base_, CellRef());
  dropped.base_node = std::exchange(base_node_, NodeRef());
  dropped.via = std::exchange(via_, NodeRef());
}

ViewState Cell::state() const {
  std::lock_guard lock(view_mutex(this));
  return {base_, node(), base_node_, via_};
}

ViewState Cell::view() {
  follow_base();
  if (!is_view_.load()) return {{}, node(), {}, {}};
  return state();
}

// Kept with every view on the way: a long chain of views is walked once.
Strides Cell::strides() {
  std::vector<CellRef> chain;
  CellRef c(this);
  for (; c && c->is_view_.load() && !c->strides_; c = c->state().base) chain.push_back(c);
  for (; !chain.empty(); chain.pop_back()) {
    Cell& view = *chain.back();
    const ViewState s = view.state();
    if (!s.base) continue;  // another thread has just made it a tensor of its own
    const Dims& shape = s.base_node->shape;
    Strides now = s.base->strides_ && s.base->is_view_.load() ? *s.base->strides_.get()
                                                              : row_major_strides(shape);
    if (s.via) now = strides_through(*s.via, shape, now);
    view.strides_.made(strides_through(*s.node, s.via ? s.via->shape : shape, now));
  }
  return is_view_.load() && strides_ ? *strides_.get() : row_major_strides(node()->shape);
}

OpSpec spec_of(const Node& n) { return {n.attrs, n.shape, n.dtype, n.device}; }

namespace {

// Does the view, taken anew, have a history? As before; and where neither had one, when an in-place
// op has given the base one. What detach() gave never has.
bool is_tracked(const Node& view, const Node& old_base, const Node& base) {
  if (view.requires_grad || view.op == Op::Alias) return view.requires_grad;
  return !old_base.requires_grad && base.requires_grad && !base.leaf;
}

}  // namespace

// The ops of the view on the base's new value. False: another thread was quicker.
bool Cell::take_anew(const ViewState& old, const NodeRef& now, uint64_t writes) {
  const ThreadScope<&ThreadState::grad> history(is_tracked(*old.node, *old.base_node, *now));
  NodeRef between, n = now;
  if (old.via) n = between = record(old.via->op, {n}, spec_of(*old.via), old.via->loc);
  n = record(old.node->op, {n}, spec_of(*old.node), old.node->loc);
  n->handles.fetch_add(1, std::memory_order_relaxed);
  ViewState dropped;
  {
    std::lock_guard lock(view_mutex(this));
    Node* found = old.node;
    if (base_ != old.base || base_node_ != old.base_node ||
        !node_.compare_exchange_strong(found, n)) {
      n->handles.fetch_sub(1, std::memory_order_relaxed);
      return false;
    }
    n.leak();
    dropped.node = NodeRef::adopt(found);
    dropped.base_node = std::exchange(base_node_, now);
    dropped.via = std::exchange(via_, std::move(between));
    checked_ = writes;
  }
  unname(dropped.node);
  written();
  return true;
}

void Cell::follow_base() {
  const uint64_t writes = viewed_writes.load(std::memory_order_acquire);
  if (!is_view_.load() || checked_.load() == writes) return;
  std::vector<CellRef> chain;  // this view, its base, and so on to the tensor that is no view
  for (CellRef c(this); c && c->is_view_.load() && c->checked_.load() != writes;
       c = c->state().base)
    chain.push_back(c);
  for (; !chain.empty(); chain.pop_back()) chain.back()->compare(writes);
}

void Cell::compare(uint64_t writes) {
  for (;;) {
    const ViewState s = state();
    if (!s.base) return;
    const NodeRef now = s.base->node();
    if (now->shape != s.base_node->shape || now->dtype != s.base_node->dtype ||
        now->device != s.base_node->device)
      return leave_base();  // the base was given other data (set_data): the view keeps what it
                            // showed
    if (now == s.base_node) return checked_.store(writes);
    if (take_anew(s, now, writes)) return;
  }
}

CellRef make_cell(NodeRef n) {
  if (n->refs.load(std::memory_order_relaxed) == 1)
    n->handles.store(1, std::memory_order_relaxed);  // the caller's reference is the only one
  else
    n->handles.fetch_add(1, std::memory_order_relaxed);
  Cell* c = new (slab<Cell>().take()) Cell(std::move(n));
  c->refs.store(1, std::memory_order_relaxed);
  return CellRef::adopt(c);
}

}  // namespace ingot
