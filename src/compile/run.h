// One run of a plan: its buffers bound, and its steps handed to the devices.
#pragma once
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "compile/plan.h"
#include "runtime/backend.h"
#include "runtime/storage.h"

namespace ingot {

class Run {
 public:
  using Tickets = std::vector<std::pair<Device, uint64_t>>;

  Run(const Plan& p, std::span<Storage* const> leaves, std::span<const Ref<Storage>> outputs)
      : p_(p), leaves_(leaves), outputs_(outputs) {}

  /// Tickets of the runs that devices have not answered for are appended to `tickets`. What it
  /// throws before has_overwritten() has left every value as it was.
  RunStatus operator()(RunArgs args, Tickets& tickets);

  /// Has a step begun that writes to a leaf's own buffer?
  bool has_overwritten() const { return overwrites_; }

 private:
  bool overwrites(const Step& s) const;
  size_t before_overwriting(size_t s, size_t e);
  void hand_over(size_t begin, size_t end, RunArgs& args, Tickets& tickets, RunStatus& status);
  void ask(const Tickets& tickets, RunStatus& status) const;
  void timed_steps(size_t begin, size_t end, const RunArgs& args);
  void timed_copy(size_t s);
  void* address(const Binding& b, const std::vector<char*>& arena) const;
  void bind(const std::vector<char*>& arena);

  const Plan& p_;
  std::span<Storage* const> leaves_;
  std::span<const Ref<Storage>> outputs_;
  std::vector<void*> addresses_;
  std::vector<LaunchItem> items_;
  bool overwrites_ = false, repeated_ = false;
};

}  // namespace ingot
