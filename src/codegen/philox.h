// Philox 4x32-10 (Salmon et al. 2011). Element n of a random tensor takes word (n % 4) of the block
// whose 128-bit counter is (base + n / 4) in the low 64 bits and 0 above, key = the generator's
// 64-bit seed. The same code serves the CPU, the oracle and, as text, the CUDA prelude.
#pragma once
#include <cstdint>

namespace ingot {

struct PhiloxBlock {
  uint32_t v[4];
};

inline PhiloxBlock philox(uint64_t counter, uint64_t key) {
  uint32_t c0 = static_cast<uint32_t>(counter), c1 = static_cast<uint32_t>(counter >> 32), c2 = 0,
           c3 = 0;
  uint32_t k0 = static_cast<uint32_t>(key), k1 = static_cast<uint32_t>(key >> 32);
  for (int r = 0; r < 10; ++r) {
    uint64_t p0 = uint64_t{0xD2511F53u} * c0, p1 = uint64_t{0xCD9E8D57u} * c2;
    uint32_t n0 = static_cast<uint32_t>(p1 >> 32) ^ c1 ^ k0,
             n2 = static_cast<uint32_t>(p0 >> 32) ^ c3 ^ k1;
    c1 = static_cast<uint32_t>(p1);
    c3 = static_cast<uint32_t>(p0);
    c0 = n0;
    c2 = n2;
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return {{c0, c1, c2, c3}};
}

}  // namespace ingot
