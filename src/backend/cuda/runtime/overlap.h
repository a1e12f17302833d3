// Which launches of a run may run side by side.
//
// A run is a list of launches that is right when they follow each other. Some of them have nothing
// to do with one another (the gradient of a weight and that of its input), and on a GPU one that
// fills it badly leaves room for another. From the memory each launch reads and writes follow the
// launches it must wait for; a captured graph keeps just these. What the memory plan gave to two
// values in turn is memory like any other here: the later writer waits for the earlier readers.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "codegen/kernel_spec.h"

namespace ingot::cuda {

/// What a launch does with one of its buffers: bytes it may reach from the buffer's address on.
struct Touch {
  size_t bytes = 0;
  bool written = false;
};
/// The same for every buffer of a launch, and whether it sets or looks at the run's status.
struct Touches {
  std::vector<Touch> buffers;
  bool may_fail = false;    // it sets the status word when an index is bad
  bool predicated = false;  // what it stores depends on the status word
};
Touches touches_of(std::span<const KernelSpec> parts);
Touches touches_of(const LibrarySpec& spec);

class Overlap {
 public:
  struct Access {
    uintptr_t begin;
    size_t bytes;
    bool written;
  };
  struct Place {
    int lane = 0;
    std::vector<int>
        after;  // launches on other lanes to wait for; those on its own lane come before it anyway
  };
  explicit Overlap(int lanes) : tail_(static_cast<size_t>(lanes), -1) {}
  /// Where the next launch goes.
  Place add(std::span<const Access> accesses, bool may_fail, bool predicated);
  /// The last launch of each lane; -1: none.
  const std::vector<int>& tails() const { return tail_; }

 private:
  using PerLane = std::vector<int>;  // the newest launch of each lane, -1: none
  struct Segment {
    int writer = -1;
    PerLane readers;
  };
  void split(uintptr_t at);
  void wait_for(int launch, PerLane& newest) const;

  std::map<uintptr_t, Segment> segments_;  // each reaches to the next one
  std::vector<int> lane_of_;               // per launch
  std::vector<PerLane>
      waited_;  // per launch: the newest launch of each lane that is over when it begins
  PerLane tail_, may_fail_;
};

}  // namespace ingot::cuda
