// Picks the functions of the best instruction set this machine has:
// INGOT_DISPATCH(Name)(arguments), inside the HWY_ONCE part of a SIMD file. Highway's own
// dispatcher lives in a library that measures the clock for four milliseconds whenever a program
// starts, so Ingot uses Highway's headers only.
#pragma once
#include "hwy/highway.h"

namespace ingot::cpu {

enum class Simd : int { Base, Avx2, Avx512 };
/// The machine's instruction set, or less: INGOT_SIMD=avx2 or INGOT_SIMD=base lowers it.
Simd simd_level();

}  // namespace ingot::cpu

#if defined(__x86_64__) && (HWY_TARGETS & HWY_AVX3) && (HWY_TARGETS & HWY_AVX2)
#define INGOT_DISPATCH(name)                                               \
  (::ingot::cpu::simd_level() == ::ingot::cpu::Simd::Avx512 ? N_AVX3::name \
   : ::ingot::cpu::simd_level() == ::ingot::cpu::Simd::Avx2 ? N_AVX2::name \
                                                            : HWY_STATIC_DISPATCH(name))
#elif defined(__x86_64__) && (HWY_TARGETS & HWY_AVX3)
#define INGOT_DISPATCH(name)                                               \
  (::ingot::cpu::simd_level() == ::ingot::cpu::Simd::Avx512 ? N_AVX3::name \
                                                            : HWY_STATIC_DISPATCH(name))
#else
#define INGOT_DISPATCH(name) HWY_STATIC_DISPATCH(name)
#endif
