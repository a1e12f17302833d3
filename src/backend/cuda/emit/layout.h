// Rewrites a kernel, before its schedule is chosen, so that a thread computes once what many of its
// points share:
// - A map over (rows.., columns) whose operands include vectors along the columns (batch norm's
// mean and
//   scale) becomes a sweep: columns outside, rows inside, and what depends on the column alone is
//   an Outer value.
// - A load that is bounded like the window it is used in, but brings the same value for every
// position of the
//   window, loses its bounds when nothing sees it where they fail.
#pragma once
#include <span>
#include <vector>

#include "backend/cuda/emit/schedule.h"

namespace ingot::cuda {

struct Layout {
  bool columns = false;
  std::vector<bool> free_loads;  // per instruction: loads whose bounds are dropped

  bool plain() const;  // nothing changes
};

Layout choose_layout(std::span<const KernelSpec> parts, const CudaTarget& target);
KernelSpec lay_out(const KernelSpec& part, const Layout& layout);

/// All that was decided about a text.
struct Plan {
  Schedule schedule;
  CudaTarget target;
  Layout layout;
  SingleIndex single;
  Numbers numbers;
  int n_buffers = 0;
  int n_stages = 1;
  bool table = false;  // the parts' words are in device memory
};

}  // namespace ingot::cuda
