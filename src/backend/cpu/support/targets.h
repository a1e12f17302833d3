// Which instruction sets the SIMD files are compiled for. Include before hwy/highway.h, in every
// such file. Fewer targets keep the library small: on x86 the baseline, AVX2 and AVX-512; elsewhere
// the baseline.
#pragma once
#if defined(__x86_64__)
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4 | HWY_AVX3_DL)
#endif
// Of a lambda.
#define INGOT_INLINE __attribute__((always_inline))
// The iterations of the next loop do not depend on each other through memory.
#if defined(__clang__)
#define INGOT_IVDEP _Pragma("clang loop vectorize(assume_safety)")
#else
#define INGOT_IVDEP _Pragma("GCC ivdep")
#endif
