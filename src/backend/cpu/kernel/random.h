// Philox bits for runs of elements (philox.h says which word an element takes).
#pragma once
#include <cstdint>

namespace ingot::cpu {

/// out[i] = word (n % 4) of block base + n / 4 for n = first + i * step.
void random_run(uint32_t* out, int64_t count, int64_t first, int64_t step, uint64_t base,
                uint64_t key);

}  // namespace ingot::cpu
