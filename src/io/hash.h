// XXH64: a fast checksum of files. Not cryptographic.
#pragma once
#include <bit>
#include <cstdint>
#include <cstring>

#include "io/file.h"

namespace ingot::io {

/// Bytes in any number of pieces, one sum at the end.
class Hash {
 public:
  void add(Bytes data) {
    total_ += data.size();
    const uint8_t* p = data.data();
    size_t n = data.size();
    if (held_ + n < sizeof hold_) {
      if (n) std::memcpy(hold_ + held_, p, n);
      held_ += n;
      return;
    }
    if (held_) {
      size_t fill = sizeof hold_ - held_;
      std::memcpy(hold_ + held_, p, fill);
      stripe(hold_);
      p += fill, n -= fill, held_ = 0;
    }
    for (; n >= sizeof hold_; p += sizeof hold_, n -= sizeof hold_) stripe(p);
    if (n) std::memcpy(hold_, p, n);
    held_ = n;
  }

  uint64_t sum() const {
    uint64_t h = k5;
    if (total_ >= sizeof hold_) {
      h = std::rotl(v_[0], 1) + std::rotl(v_[1], 7) + std::rotl(v_[2], 12) + std::rotl(v_[3], 18);
      for (uint64_t v : v_) h = (h ^ round(0, v)) * k1 + k4;
    }
    h += total_;
    const uint8_t *p = hold_, *end = hold_ + held_;
    for (; end - p >= 8; p += 8) h = std::rotl(h ^ round(0, read<uint64_t>(p)), 27) * k1 + k4;
    if (end - p >= 4) {
      h = std::rotl(h ^ read<uint32_t>(p) * k1, 23) * k2 + k3;
      p += 4;
    }
    for (; p < end; ++p) h = std::rotl(h ^ *p * k5, 11) * k1;
    h = (h ^ h >> 33) * k2;
    h = (h ^ h >> 29) * k3;
    return h ^ h >> 32;
  }

 private:
  static constexpr uint64_t k1 = 0x9e3779b185ebca87u, k2 = 0xc2b2ae3d27d4eb4fu,
                            k3 = 0x165667b19e3779f9u, k4 = 0x85ebca77c2b2ae63u,
                            k5 = 0x27d4eb2f165667c5u;
  template <class T>
  static uint64_t read(const uint8_t* p) {
    T v;
    std::memcpy(&v, p, sizeof v);
    return v;
  }
  static uint64_t round(uint64_t sum, uint64_t v) { return std::rotl(sum + v * k2, 31) * k1; }
  void stripe(const uint8_t* p) {
    for (int i = 0; i < 4; ++i) v_[i] = round(v_[i], read<uint64_t>(p + 8 * i));
  }

  uint64_t v_[4] = {k1 + k2, k2, 0, 0 - k1};
  uint8_t hold_[32] = {};
  size_t held_ = 0;
  uint64_t total_ = 0;
};

}  // namespace ingot::io
