// Cutting the pending program out of the recorded nodes, and the key that finds its plan again.
#include <algorithm>
#include <cstring>
#include <limits>
#include <mutex>
#include <unordered_map>
#include <unordered_set>

#include "base/hash.h"
#include "compile/executor.h"
#include "compile/new_value.h"
#include "graph/node_map.h"
#include "graph/recorded_function.h"
#include "graph/recorder.h"
#include "ingot/capture.h"
#include "runtime/storage.h"

namespace ingot {
namespace {

constexpr uint32_t kWanted = 0x80000000u;  // mark: needed; later the node's number in the trace
constexpr uint32_t kOutput = 0x40000000u;
constexpr uint32_t kCopy = 0x20000000u;
constexpr uint8_t kAsked = 4;  // role

bool looks_through(Op op) { return is_movement(op) || op == Op::Alias || op == Op::Fence; }

// The pending value that a handle on a view really keeps; null when there is nothing to compute.
Node* kept_by_handle(Node* n) {
  while (looks_through(n->op) && !n->computed.load(std::memory_order_relaxed)) n = n->in[0];
  if (n->computed.load(std::memory_order_relaxed) || n->is_source()) return nullptr;
  return n;
}

// Does pending n read all of k's buffer in its order?
bool whole_buffer(const Node* n, const Node* k) {
  while (n != k && (n->op == Op::Reshape || n->op == Op::Alias || n->op == Op::Fence)) n = n->in[0];
  return n == k;
}

class Tracer {
 public:
  Tracer(Recorder& rec, Trace& t) : rec_(rec), t_(t) {}

  void run(std::span<Node* const> asked, bool live) {
    try {
      collect(asked, live);
      number();
      find_survivors();
      write_key();
      find_donated();
    } catch (...) {  // out of memory: the next trace must not meet this one's marks
      clear_marks(asked);
      throw;
    }
    for (size_t i = 0; i < t_.nodes.size(); ++i) {
      t_.nodes[i]->mark = 0;
      if (dies_[i]) t_.role[i] |= kDies;
    }
  }

 private:
  // Room for one more, before anything is retained for it.
  template <class T>
  static void make_room(std::vector<T>& v) {
    if (v.size() == v.capacity()) v.reserve(std::max<size_t>(16, 2 * v.size()));
  }

  void collect(std::span<Node* const> asked, bool live) {
    std::lock_guard lock(rec_.list_lock);
    for (Node* n : asked) {
      if (n->mark & kOutput) continue;  // named twice
      t_.roots.emplace_back(n);
      n->mark |= kWanted | kOutput | (looks_through(n->op) || n->is_source() ? kCopy : 0);
    }
    for (Node* n = rec_.tail; n; n = n->prev) {
      // A view that is asked for gets its own buffer: its handle keeps nothing else alive.
      if (live && n->handles.load(std::memory_order_relaxed) > 0 && !(n->mark & kCopy) &&
          !failure_of(*n)) {
        make_room(t_.names);
        make_room(t_.roots);
        Node* k = kept_by_handle(n);
        if (k && k != n && whole_buffer(n, k) && try_retain(n))
          t_.names.emplace_back(NodeRef::adopt(n), k);
        if (k && k->recorder == &rec_ && !failure_of(*k) && !(k->mark & kOutput) && try_retain(k)) {
          k->mark |= kWanted | kOutput;
          t_.roots.push_back(NodeRef::adopt(k));
        }
      }
      if (!(n->mark & kWanted)) continue;
      t_.nodes.push_back(n);
      for (Node* i : n->inputs())
        if (!i->computed.load(std::memory_order_acquire)) i->mark |= kWanted;
    }
  }

  void number() {
    std::reverse(t_.nodes.begin(), t_.nodes.end());
    t_.role.resize(t_.nodes.size());
    for (size_t i = 0; i < t_.nodes.size(); ++i) {
      Node* n = t_.nodes[i];
      t_.role[i] = static_cast<uint8_t>((n->mark & kOutput ? 1 : 0) | (n->mark & kCopy ? 2 : 0));
      n->mark = static_cast<uint32_t>(i);
    }
  }

  void clear_marks(std::span<Node* const> asked) {
    std::lock_guard lock(rec_.list_lock);
    for (Node* n : asked) n->mark = 0;
    for (Node* n = rec_.tail; n; n = n->prev) n->mark = 0;
  }

  void put(uint64_t w) { t_.key.push_back(w); }

  uint32_t leaf(Node* n) {
    auto next = static_cast<uint32_t>(t_.leaves.size());
    uint32_t number = leaves_.at_or_insert(n, next);
    if (number == next) {
      t_.leaves.push_back(n);
      uses_.push_back(0);
    }
    ++uses_[number];
    return number;
  }

  uint64_t random_slot(Node* n, uint64_t& relative) {
    const RandomAttrs& a = n->attrs.as<RandomAttrs>();
    const uint64_t seed = a.seed, offset = static_cast<uint64_t>(a.offset);
    size_t s = 0;
    while (s < t_.seeds.size() && t_.seeds[s] != seed) ++s;
    if (s == t_.seeds.size()) {
      t_.seeds.push_back(seed);
      t_.offsets.push_back(offset);
    }
    relative = offset - t_.offsets[s];
    return s;
  }

  // Per node: op, type, device, role; attributes; shape; inputs as distances (pending) or leaf
  // numbers.
  void write_key() {
    t_.key.reserve(t_.nodes.size() * 8);
    put(fusion_enabled());
    put(tf32_allowed());
    for (size_t i = 0; i < t_.nodes.size(); ++i) {
      Node* n = t_.nodes[i];
      put(static_cast<uint64_t>(n->op) | static_cast<uint64_t>(n->dtype) << 8 |
          static_cast<uint64_t>(n->device.type()) << 16 |
          static_cast<uint64_t>(n->device.index()) << 20 | static_cast<uint64_t>(t_.role[i]) << 28 |
          static_cast<uint64_t>(n->rank()) << 32 | static_cast<uint64_t>(n->n_inputs & 0xff) << 40);
      if (n->op == Op::Arg) {
        put(t_.args.size());
        t_.args.push_back(n->attrs.as<ArgAttrs>().value);
      } else if (n->op == Op::Random) {
        uint64_t relative, slot = random_slot(n, relative);
        put(slot);
        put(relative);
      } else {
        if (n->op == Op::Const && is_float(n->dtype))
          t_.numbers.push_back({t_.key.size(), static_cast<uint32_t>(i)});
        n->attrs.append_words(t_.key);
      }
      for (int64_t d : n->shape) put(static_cast<uint64_t>(d));
      for (Node* in : n->inputs()) {
        if (!in->computed.load(std::memory_order_acquire)) {
          put(i - in->mark);
        } else {
          put(kWanted | static_cast<uint64_t>(leaf(in)));
        }
      }
    }
    for (Node* l : t_.leaves) {
      put(static_cast<uint64_t>(l->dtype) | static_cast<uint64_t>(l->device.type()) << 8 |
          static_cast<uint64_t>(l->device.index()) << 16 | static_cast<uint64_t>(l->rank()) << 32);
      for (int64_t d : l->shape) put(static_cast<uint64_t>(d));
    }
  }

  // A leaf may be overwritten when the traced nodes are the only ones that hold it. A captured
  // function that is repeated meets its leaves again, but for those it assigns anew.
  void find_donated() {
    std::unordered_set<const Node*> assigned;
    const bool capturing = is_capturing();
    if (capturing)
      for (Node* n : t_.nodes)
        if (n->op == Op::Assign) assigned.insert(n->in[0]);
    t_.donated.resize(t_.leaves.size());
    uint64_t word = 0;
    int bit = 0;
    for (size_t i = 0; i < t_.leaves.size(); ++i) {
      Node* l = t_.leaves[i];
      bool free = l->refs.load(std::memory_order_acquire) == static_cast<uint32_t>(uses_[i]) &&
                  l->handles.load(std::memory_order_relaxed) == 0 && l->storage &&
                  l->storage->refs.load(std::memory_order_acquire) ==
                      1 + l->storage->captured.load(std::memory_order_relaxed) &&
                  !l->storage->on_release && !kept_.contains(l) &&
                  (!capturing || assigned.contains(l));
      t_.donated[i] = free;
      word |= static_cast<uint64_t>(free) << bit;
      if (++bit == 64) {
        put(word);
        word = 0;
        bit = 0;
      }
    }
    put(word);
  }

  // A traced node that lives on with its inputs keeps the leaf too: one that a gradient may be
  // asked through, and one that stays pending because something that lives on (or a view's handle,
  // or autograd) still refers to it.
  void find_survivors() {
    auto pending = [&](Node* n) { return n->mark < t_.nodes.size() && t_.nodes[n->mark] == n; };
    dies_.assign(t_.nodes.size(), false);
    std::vector<uint32_t> uses(t_.nodes.size(), 0);  // references from traced nodes
    std::vector<bool> held(t_.nodes.size(), false);  // some of them from nodes that live on
    for (Node* n : t_.nodes)
      for (Node* i : n->inputs())
        if (pending(i)) ++uses[i->mark];
    for (size_t k = t_.nodes.size(); k-- > 0;) {
      Node* n = t_.nodes[k];
      uint32_t traced = uses[k] + (t_.role[k] & 1);  // and one from the trace's roots
      if (!held[k] && n->refs.load(std::memory_order_acquire) <= traced) {
        dies_[k] = true;
        continue;
      }
      bool history = n->requires_grad && !n->freed_history;
      if (history) t_.role[k] |= kAsked;
      if ((t_.role[k] & 1) && !history) continue;
      for (Node* i : n->inputs()) {
        if (pending(i))
          held[i->mark] = true;
        else
          kept_.insert(i);
      }
    }
  }

  Recorder& rec_;
  Trace& t_;
  NodeMap leaves_;
  std::unordered_set<Node*> kept_;
  std::vector<int> uses_;
  std::vector<bool> dies_;
};

}  // namespace

Trace make_trace(Recorder& rec, std::span<Node* const> asked, bool live) {
  Trace t;
  Tracer(rec, t).run(asked, live);
  return t;
}

namespace {

class GraphWriter {
 public:
  explicit GraphWriter(const Trace& t) : t_(t) {}

  Graph write() {
    g_.vals.reserve(t_.nodes.size() + t_.leaves.size() + 8);
    for (size_t i = 0; i < t_.leaves.size(); ++i) {
      Val v;
      v.dtype = t_.leaves[i]->dtype;
      v.shape = t_.leaves[i]->shape;
      v.device = t_.leaves[i]->device;
      v.slot = static_cast<int>(i);
      id_[t_.leaves[i]] = push(v);
    }
    for (size_t i = 0; i < t_.nodes.size(); ++i)
      if (const Node* n = t_.nodes[i]; n->op == Op::Assign && n->in[1]->op == Op::Call)
        results_[n->in[1]].push_back(i);
    for (size_t i = 0; i < t_.nodes.size(); ++i) {
      const Node* n = t_.nodes[i];
      if (n->op == Op::Call)
        inline_call(i);
      else if (n->op != Op::Assign || n->in[1]->op != Op::Call)
        node(i);
    }
    return std::move(g_);
  }

 private:
  int push(const Val& v) {
    g_.vals.push_back(v);
    return static_cast<int>(g_.vals.size()) - 1;
  }

  Val val_of(size_t i) const {
    const Node* n = t_.nodes[i];
    Val v;
    v.op = n->op;
    v.dtype = n->dtype;
    v.shape = n->shape;
    v.device = n->device;
    v.attrs = n->attrs;
    v.node = static_cast<int>(i);
    v.history = t_.role[i] & kAsked;
    v.output = t_.role[i] & 1;
    return v;
  }

  void finish(const Node* n, Val& v, bool copy) {
    if (copy) v.copied = true;
    replace_empty(g_, v);
    id_[n] = push(v);
  }

  void node(size_t i) {
    const Node* n = t_.nodes[i];
    Val v = val_of(i);
    v.n_in = n->n_inputs;
    for (int k = 0; k < n->n_inputs; ++k) v.in[k] = id_.at(n->in[k]);
    store_operands(g_, v);
    if (n->op == Op::Arg) {
      v.slot = arg_++;
      v.attrs = {};
    }
    if (next_ < t_.argument_of.size() && t_.argument_of[next_].first == i) {
      v.op = Op::Arg;
      v.slot = t_.argument_of[next_++].second;
      v.attrs = {};
    }
    if (n->op == Op::Random) {
      const RandomAttrs& a = n->attrs.as<RandomAttrs>();
      size_t s = 0;
      while (t_.seeds[s] != a.seed) ++s;
      v.slot = static_cast<int>(s);
      v.attrs = RandomAttrs{0, a.offset - static_cast<int64_t>(t_.offsets[s])};
    }
    bool copy = t_.role[i] & 2;
    if (copy && n->is_source()) {  // a constant or random value asked for by name: one more value
                                   // that stores it
      v.output = false;
      id_[n] = push(v);
      int stored = store_source(g_, id_[n]);
      g_.vals[stored].node = static_cast<int>(i);
      g_.vals[stored].output = true;
      return;
    }
    finish(n, v, copy);
  }

  // The steps of a function, with its results' assignments where they were when it was recorded:
  // the same values in the same order as if each op were a node.
  void inline_call(size_t i) {
    const Node* n = t_.nodes[i];
    const RecordedFunction& p = *n->attrs.as<CallAttrs>().function;
    std::vector<size_t>& results = results_[n];
    auto result = [&](size_t r) {
      return p.results[static_cast<size_t>(t_.nodes[r]->attrs.as<ResultAttrs>().index)];
    };
    auto after = [&](size_t r) { return result(r).after; };
    std::stable_sort(results.begin(), results.end(),
                     [&](size_t a, size_t b) { return after(a) < after(b); });
    std::vector<int> step(p.steps.size());
    auto value = [&](int k) {
      return k >= 0 ? step[static_cast<size_t>(k)] : id_.at(n->in[-1 - k]);
    };
    auto next = results.begin();
    for (size_t s = 0; s <= p.steps.size(); ++s) {
      for (; next != results.end() && after(*next) <= s; ++next) {
        const Node* a = t_.nodes[*next];
        Val v = val_of(*next);
        v.attrs = {};
        v.n_in = 2;
        v.in[0] = id_.at(a->in[0]);
        v.in[1] = value(result(*next).value);
        store_operands(g_, v);
        finish(a, v, t_.role[*next] & 2);
      }
      if (s < p.steps.size()) step[s] = inline_step(p.steps[s], static_cast<int>(i), value);
    }
  }

  template <class Value>
  int inline_step(const RecordedStep& s, int node, Value value) {
    Val v;
    v.op = s.op;
    v.attrs = s.spec.attrs;
    v.dtype = s.spec.dtype;
    v.shape = s.spec.shape;
    v.device = s.spec.device;
    v.node = node;
    v.n_in = static_cast<int>(s.in.size());
    for (int k = 0; k < v.n_in; ++k) v.in[k] = value(s.in[static_cast<size_t>(k)]);
    store_operands(g_, v);
    replace_empty(g_, v);
    return push(v);
  }

  const Trace& t_;
  Graph g_;
  std::unordered_map<const Node*, int> id_;
  std::unordered_map<const Node*, std::vector<size_t>>
      results_;  // of each call: traced Assign nodes
  int arg_ = 0;
  size_t next_ = 0;  // of Trace::argument_of
};

}  // namespace

Graph make_graph(const Trace& t) { return GraphWriter(t).write(); }

}  // namespace ingot
