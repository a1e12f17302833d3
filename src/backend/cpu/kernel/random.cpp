// See random.h. Sixteen blocks side by side; the compiler vectorises the lanes.
#include "backend/cpu/kernel/random.h"

#include "backend/cpu/support/targets.h"
#include "codegen/philox.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backend/cpu/kernel/random.cpp"
#include "hwy/foreach_target.h"
// after foreach_target
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace ingot::cpu::HWY_NAMESPACE {

constexpr int kBlocks = 16;

void PhiloxBlocks(uint32_t* HWY_RESTRICT out, uint64_t counter, uint64_t key) {
  uint32_t c0[kBlocks], c1[kBlocks], c2[kBlocks], c3[kBlocks];
  for (int i = 0; i < kBlocks; ++i) {
    const uint64_t c = counter + static_cast<uint64_t>(i);
    c0[i] = static_cast<uint32_t>(c);
    c1[i] = static_cast<uint32_t>(c >> 32);
    c2[i] = c3[i] = 0;
  }
  uint32_t k0 = static_cast<uint32_t>(key), k1 = static_cast<uint32_t>(key >> 32);
  for (int r = 0; r < 10; ++r) {
    for (int i = 0; i < kBlocks; ++i) {
      const uint64_t p0 = uint64_t{0xD2511F53u} * c0[i], p1 = uint64_t{0xCD9E8D57u} * c2[i];
      const uint32_t n0 = static_cast<uint32_t>(p1 >> 32) ^ c1[i] ^ k0,
                     n2 = static_cast<uint32_t>(p0 >> 32) ^ c3[i] ^ k1;
      c1[i] = static_cast<uint32_t>(p1);
      c3[i] = static_cast<uint32_t>(p0);
      c0[i] = n0;
      c2[i] = n2;
    }
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  for (int i = 0; i < kBlocks; ++i) {
    out[4 * i] = c0[i];
    out[4 * i + 1] = c1[i];
    out[4 * i + 2] = c2[i];
    out[4 * i + 3] = c3[i];
  }
}

}  // namespace ingot::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "backend/cpu/support/dispatch.h"

namespace ingot::cpu {

static uint32_t word(int64_t n, uint64_t base, uint64_t key) {
  return philox(base + static_cast<uint64_t>(n / 4), key).v[n % 4];
}

void random_run(uint32_t* out, int64_t count, int64_t first, int64_t step, uint64_t base,
                uint64_t key) {
  int64_t i = 0;
  if (step != 1) {
    for (; i < count; ++i) out[i] = word(first + i * step, base, key);
    return;
  }
  for (; i < count && (first + i) % 4; ++i) out[i] = word(first + i, base, key);
  for (; i + 4 * 16 <= count; i += 4 * 16)
    INGOT_DISPATCH(PhiloxBlocks)(out + i, base + static_cast<uint64_t>((first + i) / 4), key);
  for (; i < count; ++i) out[i] = word(first + i, base, key);
}

}  // namespace ingot::cpu
#endif
