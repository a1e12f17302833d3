// Node: one recorded operation. Immutable but for its state: pending (inputs, no value) or computed
// (a buffer). Nodes are reference-counted and slab-allocated; releasing a long chain is iterative.
// A node is made by record(), which infers shape and type (graph/shape_rules.cpp, the only place)
// and links it into its thread's Recorder.
#pragma once
#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "base/once.h"
#include "base/ref.h"
#include "graph/attributes.h"
#include "graph/op.h"
#include "ingot/device.h"
#include "ingot/error.h"
#include "ingot/shape.h"

namespace ingot {

struct Node;
struct Storage;   // graph/storage.h: a counted device buffer
class Recorder;   // graph/recorder.h: the pending nodes of one thread
struct LeafMeta;  // autograd's record of a leaf: requires_grad, grad, hooks
inline void retain(Node* n);
inline void release(Node* n);
/// Takes a reference unless the last one was dropped. Memory of nodes is only reused for nodes, so
/// n may have been destroyed meanwhile, or be another node by now. The caller therefore checks
/// afterwards that the cell or input in which it found n still names it.
inline bool try_retain(Node* n);
/// The last reference was dropped.
void destroy_node(Node* n);
void retain(Storage* s);
void release(Storage* s);
void retain(LeafMeta* m);
void release(LeafMeta* m);
using NodeRef = Ref<Node>;

/// What record() cannot take from the operands: the op's attributes and, where they do not follow,
/// the result's shape (Reshape, Slice, ScatterAdd, ...), type (Cast, Const, ...) and device
/// (sources, ToDevice).
struct OpSpec {
  Attributes attrs{};
  Dims shape{};
  DType dtype = DType::Float32;
  Device device{DeviceType::CPU, 0};
};

/// A user-defined gradient: what backward() calls instead of the op's rule, and the nodes it gives
/// gradients for.
struct CustomBackward;

/// Guards what hangs on a node or a leaf and may change: names, hooks, gradients. Held for copying
/// and swapping only: nothing is recorded, run or released under it.
std::mutex& side_mutex(const void* of);

using HookList =
    std::vector<std::pair<int, std::shared_ptr<void>>>;  // autograd casts these to its hook type

/// The rarely used fields of a node.
struct NodeExt {
  // Under side_mutex(this):
  std::string name;  // parameter path, shown in errors and explain
  std::shared_ptr<CustomBackward> custom;
  HookList hooks;
  Flag hooked;  // there have been some
  // Why there is no value (a failed run). Set once, before `failed`; read only if that is set.
  std::shared_ptr<const std::string> error;
  std::atomic<bool> failed{false};
};

/// The part of a node that outlives it: see try_retain.
struct NodeCounts {
  std::atomic<uint32_t> refs{0};
  std::atomic<uint32_t> handles{0};  // Tensor cells that name this node
};

struct NodeState {
  std::atomic<bool> computed{false};  // it has its value (storage)
  Op op = Op::Leaf;
  DType dtype = DType::Float32;
  Device device{DeviceType::CPU, 0};
  Flag requires_grad;
  bool linked = false;  // in its recorder's list; whoever changes it holds a reference
  std::atomic<bool> awaited{
      false};          // a leaf that some recording has counted: see Recorder::leaf_bytes
  Flag freed_history;  // backward() went through without retain_graph
  std::atomic<uint16_t> n_inputs{0};
  uint32_t mark = 0;  // scratch of the traversal that holds the recorder's lock
  uint64_t seq = 0;   // recording order in this process; inputs always have a smaller one
  Attributes attrs;
  Node* few[3] = {nullptr, nullptr, nullptr};
  Node** in = few;  // owned references; points to the heap when there are more than 3
  Dims shape;
  SourceLoc loc;
  Ref<Storage> storage;
  OnceRef<LeafMeta> leaf;  // set on leaves that require gradients
  OnceBox<NodeExt> ext;
  Recorder* recorder = nullptr;  // null for leaves
  Node *prev = nullptr, *next = nullptr;

  /// Only where nothing can release them meanwhile; otherwise hold_inputs().
  std::span<Node* const> inputs() const { return {in, n_inputs.load(std::memory_order_relaxed)}; }
  int rank() const { return shape.size(); }
  int64_t numel() const { return shape.numel(); }
  size_t bytes() const { return static_cast<size_t>(numel()) * size_of(dtype); }
  NodeExt& extra() { return ext.made(); }
  bool is_source() const { return ingot::is_source(op); }
};
struct Node : NodeCounts, NodeState {};

inline bool try_retain(Node* n) {
  uint32_t refs = n->refs.load(std::memory_order_relaxed);
  while (refs && !n->refs.compare_exchange_weak(refs, refs + 1, std::memory_order_acq_rel,
                                                std::memory_order_relaxed)) {
  }
  return refs != 0;
}
inline void retain(Node* n) { n->refs.fetch_add(1, std::memory_order_relaxed); }
inline void release(Node* n) {
  if (n->refs.fetch_sub(1, std::memory_order_acq_rel) == 1) destroy_node(n);
}

/// Records op on inputs. Throws Error at a wrong shape, type, device or axis; loc is the user's
/// line. Elementwise ops broadcast their inputs (NumPy's rule) and want equal types; a 0-d input
/// may be on another device only by ToDevice. Sets requires_grad from the inputs when gradients are
/// on and the op is differentiable.
NodeRef record_list(Op op, std::span<Node* const> inputs, const OpSpec& spec, const SourceLoc& loc);
/// The same, taking the references over.
NodeRef record_taking(Op op, std::span<NodeRef> inputs, const OpSpec& spec, const SourceLoc& loc);
template <size_t N>
NodeRef record(Op op, NodeRef (&&inputs)[N], const OpSpec& spec, const SourceLoc& loc) {
  return record_taking(op, inputs, spec, loc);
}
struct NoInputs {};
inline NodeRef record(Op op, NoInputs, const OpSpec& spec, const SourceLoc& loc) {
  return record_taking(op, {}, spec, loc);
}
/// Held nodes as a list of pointers, for as long as they are held.
inline std::span<Node* const> pointers(const std::vector<NodeRef>& held) {
  static_assert(sizeof(NodeRef) == sizeof(Node*));
  return {reinterpret_cast<Node* const*>(held.data()), held.size()};
}

/// Puts the inputs into `held`: another thread that computes the node, or frees its history, lets
/// them go. False when they are gone.
bool hold_inputs(const Node& n, std::vector<NodeRef>& held);
/// One of them, or null.
NodeRef held_input(const Node& n, int k);
/// Why a node has no value, or null.
inline const std::string* failure_of(const Node& n) {
  const NodeExt* e = n.ext.get();
  return e && e->failed.load(std::memory_order_acquire) ? e->error.get() : nullptr;
}
void set_failure(Node* n, const std::shared_ptr<const std::string>& why);
/// A user-defined gradient, or null.
std::shared_ptr<CustomBackward> custom_of(const Node& n);
/// A 0-d number that is an argument of the plan; a repeated run reads it anew where it has a
/// source.
NodeRef record_argument(double value, DType dtype, Device device, const SourceLoc& loc);
NodeRef record_argument(const std::shared_ptr<const double>& source, DType dtype, Device device,
                        const SourceLoc& loc);
/// A computed leaf over a buffer.
NodeRef make_leaf(Ref<Storage> storage, DType dtype, const Dims& shape, Device device);

/// Result type and shape of op; the only place that knows. Fills dtype, shape, device; throws
/// Error(loc).
struct Inferred {
  DType dtype;
  Dims shape;
  Device device;
};
Inferred infer(Op op, std::span<Node* const> inputs, const OpSpec& spec, const SourceLoc& loc);
/// NumPy's broadcast of two shapes; false when they do not fit.
bool broadcast_shapes(const Dims& a, const Dims& b, Dims& out);

/// Gradient mode of this thread.
bool grad_enabled();
void set_grad_enabled(bool on);

/// "softmax", "gradient of softmax", "matmul": a composite by its function's name.
std::string name_of(Op op, const Attributes& attrs);
/// "float32[2, 3] on cpu (fc.weight)"
std::string describe(const Node& n);
/// The name of a tensor over n: its leaf's, if it is one and has one.
std::string name_of(const Node& n, LeafMeta* leaf);
inline std::string describe(const NodeRef& n) { return describe(*n); }
/// The graph below a node, one line each, for INGOT_DEBUG=graph.
std::string dump(std::span<Node* const> roots);

/// Makes every node of the list computed: what is pending below them is compiled and run, together
/// with all pending values of this thread that a live handle names. This and the next three are the
/// engine's (graph/engine.h).
void materialise(std::span<Node* const> nodes, const SourceLoc& loc);
/// Runs everything that is pending in this thread and named by a handle.
void run_pending();
/// Raises the errors of runs that a device has answered for (all of them when `wait`).
void check_runs(Device device, bool wait);
/// Called by record() when a thread has too much pending work; runs it.
void flush_if_due(Recorder& r);

}  // namespace ingot
