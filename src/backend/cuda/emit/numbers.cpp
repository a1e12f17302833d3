// The numbers that a text reads: extents, strides, and divisors as magic numbers.
#include <bit>

#include "backend/cuda/emit/schedule.h"

namespace ingot::cuda {

std::string Numbers::use(const std::string& name, Value value) {
  if (known_.emplace(name, static_cast<int>(list_.size())).second)
    list_.push_back({name, std::move(value), false});
  return name;
}

std::string Numbers::divide(const std::string& x, const std::string& name, const Value& value,
                            bool wide) {
  if (wide) return "(" + x + " / " + use(name, value) + ")";
  std::string magic = "m_" + name;
  if (known_.emplace(magic, static_cast<int>(list_.size())).second)
    list_.push_back(
        {magic,
         [value](const KernelSpec& k, const Geometry& g) { return magic_divisor(value(k, g)); },
         true});
  return "ig_div(" + x + ", " + magic + ")";
}

int64_t magic_divisor(int64_t d) {
  if (d >= kNarrowLimit) return 0;  // of a part in a text that divides in 64 bits
  int l = std::bit_width(static_cast<uint64_t>(d) - 1);  // ceil(log2 d)
  uint64_t m =
      ((uint64_t{1} << (31 + l)) + static_cast<uint64_t>(d) - 1) / static_cast<uint64_t>(d);
  return static_cast<int64_t>(m | (static_cast<uint64_t>(31 + l) << 32));
}

}  // namespace ingot::cuda
