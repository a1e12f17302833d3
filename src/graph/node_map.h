// NodeMap: Node* -> uint32_t by open addressing. A walk touches each node a few times;
// std::unordered_map's allocation per node would cost more than the walk.
#pragma once
#include <cstdint>
#include <vector>

#include "graph/node.h"

namespace ingot {

class NodeMap {
 public:
  /// The value of n, or nullptr.
  uint32_t* find(const Node* n) {
    if (slots_.empty()) return nullptr;
    Slot& s = slot(n);
    return s.key ? &s.value : nullptr;
  }
  /// The value of n; `fresh` when n is new. The reference is good until the next insertion.
  uint32_t& at_or_insert(const Node* n, uint32_t fresh) {
    if (2 * (count_ + 1) > slots_.size()) grow();
    Slot& s = slot(n);
    if (!s.key) {
      s = {n, fresh};
      ++count_;
    }
    return s.value;
  }
  void insert(const Node* n, uint32_t value) { at_or_insert(n, value) = value; }

 private:
  struct Slot {
    const Node* key = nullptr;
    uint32_t value = 0;
  };
  Slot& slot(const Node* n) {
    size_t mask = slots_.size() - 1;
    // Nodes are 64-byte aligned blocks of slabs: the low bits say nothing.
    size_t h = (reinterpret_cast<uintptr_t>(n) >> 6) * 0x9E3779B97F4A7C15ull;
    for (size_t i = h >> 20;; ++i) {
      Slot& s = slots_[i & mask];
      if (!s.key || s.key == n) return s;
    }
  }
  void grow() {
    std::vector<Slot> old(slots_.empty() ? 64 : slots_.size() * 2);
    old.swap(slots_);
    for (Slot& s : old)
      if (s.key) slot(s.key) = s;
  }
  std::vector<Slot> slots_;
  size_t count_ = 0;
};

}  // namespace ingot
