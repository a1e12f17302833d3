// Allocation, reference counts and recording of nodes. Blocks come from a per-thread free list (slabs of 64),
// and releasing the last reference works off an explicit stack, so that a chain of a million nodes does not
// recurse.
#include "graph/node.h"

#include <cstring>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

#include "base/env.h"
#include "base/thread.h"
#include "graph/cell.h"
#include "graph/handle.h"
#include "graph/layer_log.h"
#include "graph/leaf.h"
#include "graph/recorder.h"
#include "ingot/runtime.h"
#include "runtime/storage.h"

namespace ingot {
namespace {

// A free list per thread and type. Blocks freed by another thread than the allocating one simply change
// lists.
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
  union Block {
    Block* next;
    alignas(T) unsigned char bytes[sizeof(T)];
  };
  struct Left {
    ForkMutex<ForkOrder::Small> mutex;
    Block* free = nullptr;
  };
  static Left& left() {
    static Left* l = new Left;  // never destroyed: threads may end late
    return *l;
  }
  static constexpr int kBlocks = 64;
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
    // Slabs are never returned to the system: they hold blocks that any thread may have on its list.
    auto* blocks = static_cast<Block*>(::operator new (sizeof(Block) * kBlocks, std::align_val_t{64}));
    for (int i = 0; i < kBlocks; ++i) give(&blocks[i]);
  }
  Block* free_ = nullptr;
};

// Plain pointers in thread-local storage: nothing is destroyed at thread exit, so late releases stay valid.
template <class T>
Slab<T>& slab() {
  static INGOT_THREAD_LOCAL Slab<T> s;
  return s;
}

std::atomic<uint64_t> next_seq{1};
INGOT_THREAD_LOCAL bool grad_mode = true;

// Dead nodes whose inputs are still to be released, chained by `next`: releasing must not need memory.
struct ReleaseStack {
  Node* top;
  bool active;
};
INGOT_THREAD_LOCAL ReleaseStack release_stack{nullptr, false};

void destroy(Node* n) {
  for (Node* i : n->inputs())
    if (i) release(i);
  if (n->in != n->few) delete[] n->in;
  n->~Node();
  slab<Node>().give(n);
}

NodeRef new_node() {
  Node* n = new (slab<Node>().take()) Node;
  n->refs.store(1, std::memory_order_relaxed);
  return NodeRef::adopt(n);
}

[[noreturn]] void throw_failed(Op op, const Node& n, const SourceLoc& loc) {
  throw Error(
      ErrorKind::State, info(op).name,
      "its operand " + describe(n) + " was not computed because an earlier run failed: " + *n.ext->error,
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

bool differentiable(Op op, DType result) {
  return is_float(result) && op != Op::Const && op != Op::Arg && op != Op::Iota && op != Op::Random &&
         op != Op::Uniform;
}

}  // namespace

bool try_retain(Node* n) {
  uint32_t refs = n->refs.load(std::memory_order_relaxed);
  while (refs && !n->refs.compare_exchange_weak(refs, refs + 1, std::memory_order_acq_rel,
                                                std::memory_order_relaxed)) {
  }
  return refs != 0;
}

void destroy_node(Node* n) {
  ReleaseStack& s = release_stack;
  if (n->linked) n->recorder->unlink(n);
  n->next = s.top;
  s.top = n;
  if (s.active) return;
  s.active = true;
  while (s.top) destroy(std::exchange(s.top, s.top->next));
  s.active = false;
}

void retain(LeafMeta* m) { m->refs.fetch_add(1, std::memory_order_relaxed); }
void release(LeafMeta* m) {
  if (m->refs.fetch_sub(1, std::memory_order_acq_rel) == 1) delete m;
}

static std::atomic<bool> eager{env::flag("INGOT_EAGER")};
bool is_eager() { return eager.load(std::memory_order_relaxed); }
void set_eager(bool on) { eager = on; }

bool grad_enabled() { return grad_mode; }
void set_grad_enabled(bool on) { grad_mode = on; }

NodeRef record(Op op, std::initializer_list<Node*> inputs, const Attrs& attrs, const SourceLoc& loc) {
  return record(op, std::span<Node* const>(inputs.begin(), inputs.size()), attrs, loc);
}

NodeRef record(Op op, std::span<Node* const> inputs, const Attrs& attrs, const SourceLoc& loc) {
  Recorder& rec = Recorder::current();
  bool needs_grad = false, foreign = false, fresh = false;
  for (Node* i : inputs) {
    if (i->ext && i->ext->error) throw_failed(op, *i, loc);
    needs_grad = needs_grad || i->requires_grad;
    foreign = foreign || (i->recorder && i->recorder != &rec);
    fresh = fresh || (i->op == Op::Leaf && !i->awaited.load(std::memory_order_relaxed));
  }
  Inferred r = infer(op, inputs, attrs, loc);
  needs_grad = needs_grad && grad_mode && differentiable(op, r.dtype);
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
  n->mask = attrs.mask;
  n->imm_i = attrs.i;
  n->imm_f = attrs.f;
  n->seq = next_seq.fetch_add(1, std::memory_order_relaxed);
  if (inputs.size() > 3) n->in = new Node*[inputs.size()];
  n->n_inputs.store(static_cast<uint16_t>(inputs.size()), std::memory_order_relaxed);
  for (size_t i = 0; i < inputs.size(); ++i) {
    n->in[i] = inputs[i];
    retain(inputs[i]);
  }
  if (!attrs.d0.empty() || op == Op::Random) {
    NodeExt& e = n->extra();
    e.d0 = attrs.d0;
    e.d1 = attrs.d1;
    e.seed = attrs.seed;
  }
  if (attrs.arg_source) n->extra().arg_source = attrs.arg_source;
  n->recorder = &rec;
  rec.link(n);
  return made;
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
  // The thread that ran the node and the one that freed its history may both come here: one of them does it.
  int count = n->n_inputs.exchange(0);
  for (int i = 0; i < count; ++i) release(n->in[i]);
}

// --- Recorder
// ---------------------------------------------------------------------------------------------------

namespace {

// All recorders there are. A thread that ends leaves its own to a later one, as soon as nothing is pending in
// it: nodes name it without counting.
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
INGOT_THREAD_LOCAL Recorder* own_recorder = nullptr;

Recorder& take_recorder() {
  thread_local struct AtExit {
    bool here = false;
    ~AtExit() {
      if (own_recorder) recorders().leave(std::exchange(own_recorder, nullptr));
    }
  } at_exit;
  at_exit.here = true;
  own_recorder = recorders().take();
  return *own_recorder;
}

}  // namespace

// Never destroyed.
Recorder::Recorder() {
  add_fork_lock({ForkOrder::Lists, &list_lock,
                 [](void* l, const timespec&) {
                   static_cast<SpinLock*>(l)->lock();
                   return true;
                 },
                 [](void* l) { static_cast<SpinLock*>(l)->unlock(); },
                 [](void* l) { static_cast<SpinLock*>(l)->unlock(); }});
}

Recorder& Recorder::current() { return own_recorder ? *own_recorder : take_recorder(); }

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

void retain(Cell* c) { c->refs.fetch_add(1, std::memory_order_relaxed); }
// One handle less. The gradient a non-leaf keeps (hook number 0) leads back to it: without a handle nobody
// can ask for it, and the circle is cut.
static void unname(Node* n) {
  // With no other reference there is no other handle, nor can one come.
  if (n->refs.load(std::memory_order_acquire) == 1)
    n->handles.store(0, std::memory_order_relaxed);
  else if (n->handles.fetch_sub(1, std::memory_order_acq_rel) != 1)
    return;
  if (!n->ext || n->ext->hooks.empty()) return;
  std::erase_if(n->ext->hooks, [](const auto& hook) { return hook.first == 0; });
}

// A view of a view of ... is released without recursion.
void release(Cell* c) {
  while (c) {
    if (c->refs.load(std::memory_order_acquire) != 1 && c->refs.fetch_sub(1, std::memory_order_acq_rel) != 1)
      return;
    if (c->node) unname(c->node.get());
    if (c->meta) {  // a pending gradient leads back to its leaf: a circle that would never be released
      c->meta->named = false;
      c->meta->grad = CellRef();
    }
    Cell* base = c->base.leak();
    c->~Cell();
    slab<Cell>().give(c);
    c = base;
  }
}

namespace {
// Counts the writes to cells that have views. A view compares its bases only when there was one.
std::atomic<uint64_t> viewed_writes{0};
}  // namespace

void Cell::rebind(NodeRef n) {
  n->handles.fetch_add(1, std::memory_order_relaxed);
  if (node) unname(node.get());
  node = std::move(n);
  if (viewed) viewed_writes.fetch_add(1, std::memory_order_release);
}

void rebind_leaf(Cell& cell, NodeRef value) {
  value->leaf = cell.meta;
  value->requires_grad = cell.meta && cell.meta->requires_grad;
  value->freed_history = true;  // nothing is asked through a leaf: once computed it may let its inputs go
  cell.rebind(std::move(value));
}

void Cell::become_view(Cell& of) {
  base_node = NodeRef(of.current());
  base = CellRef(&of);
  of.viewed = true;
  checked = viewed_writes.load(std::memory_order_acquire);
  if (node->in[0] != base_node.get()) via = NodeRef(node->in[0]);
}

void Cell::leave_base() {
  base = CellRef();
  base_node = via = NodeRef();
}

Attrs movement_attrs(const Node& op) {
  Attrs a;
  a.shape = op.shape;
  if (op.ext) {
    a.d0 = op.ext->d0;
    a.d1 = op.ext->d1;
  }
  return a;
}

namespace {

// Does the view, taken anew, have a history? As before; and where neither had one, when an in-place op has
// given the base one. What detach() gave never has.
bool is_tracked(const Node& view, const Node& old_base, const Node& base) {
  if (view.requires_grad || view.op == Op::Alias) return view.requires_grad;
  return !old_base.requires_grad && base.requires_grad && !base.leaf;
}

}  // namespace

void Cell::follow_base() {
  const uint64_t writes = viewed_writes.load(std::memory_order_acquire);
  if (checked == writes) return;
  std::vector<Cell*> chain;  // this view, its base, and so on to the tensor that is no view
  for (Cell* c = this; c->base && c->checked != writes; c = c->base.get()) chain.push_back(c);
  const bool mode = grad_mode;
  struct Restore {
    bool mode;
    ~Restore() { grad_mode = mode; }
  } restore{mode};
  for (size_t i = chain.size(); i-- > 0;) {
    Cell& c = *chain[i];
    NodeRef now = c.base->node;
    if (now->shape != c.base_node->shape || now->dtype != c.base_node->dtype ||
        now->device != c.base_node->device) {
      c.leave_base();  // the base was given other data (set_data): the view keeps what it showed
      continue;
    }
    if (now != c.base_node) {
      grad_mode = is_tracked(*c.node, *c.base_node, *now);
      NodeRef between, n = now;
      if (c.via) n = between = record(c.via->op, {n.get()}, movement_attrs(*c.via), c.via->loc);
      n = record(c.node->op, {n.get()}, movement_attrs(*c.node), c.node->loc);
      c.base_node = std::move(now);
      c.via = std::move(between);
      c.rebind(std::move(n));
    }
    c.checked = writes;
  }
}

CellRef make_cell(NodeRef n) {
  Cell* c = new (slab<Cell>().take()) Cell;
  c->refs.store(1, std::memory_order_relaxed);
  if (n->refs.load(std::memory_order_relaxed) == 1)
    n->handles.store(1, std::memory_order_relaxed);  // the caller's reference is the only one
  else
    n->handles.fetch_add(1, std::memory_order_relaxed);
  c->node = std::move(n);
  return CellRef::adopt(c);
}

}  // namespace ingot
