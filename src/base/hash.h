// A fast 64-bit hash of words, for plan keys and common subexpressions (always
// followed by a full comparison).
#pragma once
#include <cstdint>
#include <cstring>

namespace ingot {

class Hasher {
 public:
  void add(uint64_t x) {
    h_ = (h_ ^ x) * 0x9E3779B97F4A7C15ull;
    h_ ^= h_ >> 29;
  }
  void add(int64_t x) { add(static_cast<uint64_t>(x)); }
  void add(int x) { add(static_cast<uint64_t>(static_cast<uint32_t>(x))); }
  void add_bits(double x) {
    uint64_t u;
    std::memcpy(&u, &x, sizeof u);
    add(u);
  }
  uint64_t value() const { return h_ ^ (h_ >> 32); }

 private:
  uint64_t h_ = 0x243F6A8885A308D3ull;
};

}  // namespace ingot
