// See dispatch.h.
#include "backend/cpu/support/targets.h"
// before highway
#include "backend/cpu/support/dispatch.h"

#include <cstdarg>
#include <cstdio>
#include <cstdlib>

#include "base/env.h"

namespace ingot::cpu {

static Simd detect() {
  Simd have = Simd::Base;
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
      __builtin_cpu_supports("bmi2"))
    have = Simd::Avx2;
  if (have == Simd::Avx2 && __builtin_cpu_supports("avx512f") &&
      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512cd"))
    have = Simd::Avx512;
#endif
  if (env::is("INGOT_SIMD", "base")) return Simd::Base;
  if (env::is("INGOT_SIMD", "avx2") && have == Simd::Avx512) return Simd::Avx2;
  return have;
}

Simd simd_level() {
  static const Simd level = detect();
  return level;
}

}  // namespace ingot::cpu

// Highway's headers name this function for their assertions in debug builds.
namespace hwy {
void Abort(const char* file, int line, const char* format, ...) {
  va_list args;
  va_start(args, format);
  std::fprintf(stderr, "%s:%d: ", file, line);
  std::vfprintf(stderr, format, args);
  va_end(args);
  std::abort();
}
}  // namespace hwy
