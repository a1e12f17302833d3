// Allocations of the whole process that fail on purpose.
#pragma once
#include <cstdint>

namespace ingot::test {

/// From now on the allocation after `after` more throws std::bad_alloc; `on`: all that follow it as
/// well.
void fail_allocation(int64_t after, bool on);
/// Counts without failing.
void count_allocations();
/// No more; how many there were since.
int64_t stop_counting();

}  // namespace ingot::test
