// Cell: what copies of a Tensor share. In-place calls rebind the cell to another node, so all
// copies see it. A cell made by a movement op remembers its base cell: writing to the view writes
// through to the base, and a view whose base has moved on is recorded anew when it is read.
//
// Threads may read one cell while others rebind it. A reader takes a reference to the node it finds
// and then looks whether the cell still names it: what it holds then was the cell's value at that
// moment, and nobody frees it. No lock is taken, but for what a view knows of its base.
#pragma once
#include <atomic>

#include "graph/node.h"
#include "graph/strides.h"

namespace ingot {

struct Cell;
void retain(Cell* c);
void release(Cell* c);
using CellRef = Ref<Cell>;

/// What a view knows of its base: all of one moment.
struct ViewState {
  CellRef base;       // null: the tensor is no view
  NodeRef node;       // what the view's cell names ...
  NodeRef base_node;  // ... reaches this node of the base by one movement op, or by two ...
  NodeRef via;        // ... with this one between (a computed node may have dropped its inputs)
};

struct Cell {
  std::atomic<uint32_t> refs{0};

 private:
  std::atomic<bool> viewed_{false};   // some cell has, or had, this one as its base
  std::atomic<bool> is_view_{false};  // base_ is there

 public:
  OnceRef<LeafMeta> meta;  // leaves that require gradients

  explicit Cell(NodeRef n) : node_(n.leak()) {}
  ~Cell() { ingot::release(node_.load(std::memory_order_relaxed)); }
  Cell(const Cell&) = delete;
  Cell& operator=(const Cell&) = delete;

  /// The node this cell names now. A view whose base was written to is taken anew.
  NodeRef current() {
    if (is_view_.load(std::memory_order_relaxed)) [[unlikely]]
      follow_base();
    return node();
  }
  void rebind(NodeRef n) { swap_in(std::move(n)); }
  /// The same unless the cell names another node than `expected` by now.
  bool rebind_if(const NodeRef& expected, const NodeRef& n);

  /// For the cell of a new view, before another thread sees it. `from` is the node of base it was
  /// taken of, `via` the node between, or null.
  void become_view(Cell& of, NodeRef from, NodeRef via);
  /// The view as current() has it, and its base. No view: its node alone.
  ViewState view();
  /// The strides of a view that is up to date: by the ops from the tensor that is no view, which is
  /// row-major.
  Strides strides();
  /// From now on no view: what is written to the former base is not seen here.
  void leave_base();

 private:
  friend void release(Cell* c);
  NodeRef node() const {
    for (;;) {
      Node* n = node_.load(std::memory_order_acquire);
      if (!try_retain(n)) continue;  // it was replaced, and released, just now
      NodeRef held = NodeRef::adopt(n);
      if (node_.load(std::memory_order_acquire) == n) [[likely]]
        return held;
    }
  }
  void swap_in(NodeRef n);
  void written();
  ViewState state() const;
  void follow_base();
  void compare(uint64_t writes);
  bool take_anew(const ViewState& old, const NodeRef& now, uint64_t writes);

  std::atomic<Node*> node_;  // counted, never null; a view's may be out of date
  std::atomic<uint64_t> checked_{
      0};  // how many writes to viewed cells there had been at the last comparison
  OnceBox<const Strides> strides_;  // of a view, once somebody asked
  // Under view_mutex().
  CellRef base_;
  NodeRef base_node_, via_;
};
/// What records the node's op once more.
OpSpec spec_of(const Node& n);
CellRef make_cell(NodeRef n);

}  // namespace ingot
