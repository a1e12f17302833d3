// CUDA's built-ins for a C++ compiler: included before generated kernel text, which then runs
// on the CPU. No #include here, so that a kernel compiles in a moment. The threads of a block are
// fibers of the emulator (emulator.cpp): a barrier or a shuffle calls back into it through ig_emu.
#pragma once

struct IgEmuDim {
  unsigned x, y, z;
};
struct IgEmuState {
  IgEmuDim thread, block, block_dim, grid_dim;
  unsigned char* dynamic_shared;
  void (*barrier)();
  // Gives the value of lane `from` of this warp.
  unsigned long long (*shuffle)(unsigned long long value, unsigned from);
};
extern "C" {
IgEmuState* ig_emu;
}

#define threadIdx (ig_emu->thread)
#define blockIdx (ig_emu->block)
#define blockDim (ig_emu->block_dim)
#define gridDim (ig_emu->grid_dim)
#define __global__
#define __device__
#define __forceinline__ inline
#define __shared__ static
#define __align__(n) __attribute__((aligned(n)))
#define __launch_bounds__(...)
#define IG_FN static inline
#define IG_UNROLL
#define IG_DYNAMIC_SHARED(name) unsigned char* const name = ig_emu->dynamic_shared

struct alignas(8) uint2 {
  unsigned x, y;
};
struct alignas(16) uint4 {
  unsigned x, y, z, w;
};
struct alignas(8) float2 {
  float x, y;
};
struct alignas(16) float4 {
  float x, y, z, w;
};

static inline void __syncthreads() { ig_emu->barrier(); }
template <class T>
static inline T ig_emu_shuffle(T v, unsigned from) {
  unsigned long long bits = 0;
  __builtin_memcpy(&bits, &v, sizeof v);
  bits = ig_emu->shuffle(bits, from);
  __builtin_memcpy(&v, &bits, sizeof v);
  return v;
}
template <class T>
static inline T __shfl_xor_sync(unsigned, T v, int m) {
  return ig_emu_shuffle(v, (threadIdx.x & 31) ^ m);
}
template <class T>
static inline T __shfl_sync(unsigned, T v, int lane) {
  return ig_emu_shuffle(v, lane);
}
static inline void __syncwarp() { ig_emu_shuffle(0, threadIdx.x & 31); }
// Only whole warps vote.
static inline unsigned __ballot_sync(unsigned, bool vote) {
  unsigned all = 0;
  for (unsigned lane = 0; lane < 32; ++lane) all |= ig_emu_shuffle(unsigned(vote), lane) << lane;
  return all;
}
static inline int __popc(unsigned v) { return __builtin_popcount(v); }
static inline unsigned atomicAdd(unsigned* p, unsigned v) {
  unsigned old = *p;
  *p += v;
  return old;
}
template <class T>
static inline T __ldg(const T* p) {
  return *p;
}
template <class T>
static inline T __ldcs(const T* p) {
  return *p;
}
template <class T>
static inline void __stcs(T* p, T v) {
  *p = v;
}
static inline int atomicCAS(int* p, int expected, int v) {
  int old = *p;
  if (old == expected) *p = v;
  return old;
}
static inline unsigned __umulhi(unsigned a, unsigned b) {
  return (unsigned)(((unsigned long long)a * b) >> 32);
}

static inline float ig_bits_f32(unsigned u) {
  float x;
  __builtin_memcpy(&x, &u, 4);
  return x;
}
static inline double ig_bits_f64(unsigned long long u) {
  double x;
  __builtin_memcpy(&x, &u, 8);
  return x;
}
static inline unsigned ig_emu_bits(float x) {
  unsigned u;
  __builtin_memcpy(&u, &x, 4);
  return u;
}
static inline float ig_up_bf16(unsigned short h) { return ig_bits_f32((unsigned)h << 16); }
static inline unsigned short ig_down_bf16(float x) {
  if (x != x) return 0x7fff;
  unsigned u = ig_emu_bits(x);
  return (unsigned short)((u + 0x7fff + ((u >> 16) & 1)) >> 16);
}
static inline float ig_up_f16(unsigned short h) {
  unsigned sign = (unsigned)(h & 0x8000) << 16, e = (h >> 10) & 31, m = h & 1023;
  if (e == 31) return ig_bits_f32(sign | 0x7f800000u | (m << 13));
  if (e == 0) {
    float v = (float)m * 5.9604644775390625e-8f;
    return sign ? -v : v;
  }
  return ig_bits_f32(sign | ((e + 112) << 23) | (m << 13));
}
static inline unsigned short ig_down_f16(float x) {
  unsigned u = ig_emu_bits(x), sign = (u >> 16) & 0x8000, a = u & 0x7fffffff;
  if (a > 0x7f800000) return 0x7fff;
  if (a >= 0x477ff000) return (unsigned short)(sign | 0x7c00);
  if (a < 0x38800000) {  // below the smallest normal: adding 0.5 leaves the rounded multiple of
                         // 2^-24 in the low bits
    float r = ig_bits_f32(a) + 0.5f;
    return (unsigned short)(sign | (ig_emu_bits(r) - 0x3f000000));
  }
  a += 0xfff + ((a >> 13) & 1);
  return (unsigned short)(sign | ((a - 0x38000000) >> 13));
}
template <class X>
static inline void ig_opaque(X&) {}
static inline unsigned ig_pair_bf16(float lo, float hi) {
  return ig_down_bf16(lo) | (unsigned)ig_down_bf16(hi) << 16;
}
static inline unsigned ig_pair_f16(float lo, float hi) {
  return ig_down_f16(lo) | (unsigned)ig_down_f16(hi) << 16;
}
// Lane (g, t) of a has rows g and g + 8 at 2 t, 2 t + 1 and eight further; of b column g at the
// same places; of c rows g and g + 8, columns 2 t and 2 t + 1.
template <float (*Up)(unsigned short)>
static inline void ig_emu_mma(float* c, unsigned a0, unsigned a1, unsigned a2, unsigned a3,
                              unsigned b0, unsigned b1) {
  const unsigned lane = threadIdx.x & 31, g = lane >> 2, t = lane & 3;
  for (unsigned from = 0; from < 4; ++from) {
    const unsigned a[4] = {ig_emu_shuffle(a0, g * 4 + from), ig_emu_shuffle(a1, g * 4 + from),
                           ig_emu_shuffle(a2, g * 4 + from), ig_emu_shuffle(a3, g * 4 + from)};
    for (unsigned column = 0; column < 2; ++column) {
      const unsigned b[2] = {ig_emu_shuffle(b0, (2 * t + column) * 4 + from),
                             ig_emu_shuffle(b1, (2 * t + column) * 4 + from)};
      for (unsigned k = 0; k < 4; ++k) {
        const float x = Up((unsigned short)(b[k >> 1] >> (k & 1) * 16));
        c[column] += Up((unsigned short)(a[k >> 1 << 1] >> (k & 1) * 16)) * x;
        c[2 + column] += Up((unsigned short)(a[(k >> 1 << 1) + 1] >> (k & 1) * 16)) * x;
      }
    }
  }
}
static inline void ig_mma_bf16(float* c, unsigned a0, unsigned a1, unsigned a2, unsigned a3,
                               unsigned b0, unsigned b1) {
  ig_emu_mma<ig_up_bf16>(c, a0, a1, a2, a3, b0, b1);
}
static inline void ig_mma_f16(float* c, unsigned a0, unsigned a1, unsigned a2, unsigned a3,
                              unsigned b0, unsigned b1) {
  ig_emu_mma<ig_up_f16>(c, a0, a1, a2, a3, b0, b1);
}
template <bool Transposed>
static inline void ig_emu_matrices(unsigned* r, const void* p) {
  const unsigned lane = threadIdx.x & 31, row = lane >> 2, at = 2 * (lane & 3);
  for (unsigned m = 0; m < 4; ++m) {
    const auto* first = (const unsigned short*)ig_emu_shuffle(p, m * 8 + (Transposed ? at : row));
    const auto* second =
        Transposed ? (const unsigned short*)ig_emu_shuffle(p, m * 8 + at + 1) : first + 1;
    const unsigned from = Transposed ? row : at;
    r[m] = first[from] | (unsigned)second[from] << 16;
  }
}
static inline void ig_matrix(unsigned* r, const void* p) { ig_emu_matrices<false>(r, p); }
static inline void ig_matrix_transposed(unsigned* r, const void* p) { ig_emu_matrices<true>(r, p); }
// Blocks run one after the other and have the same shared memory: the last of a cluster finds what
// the others put there.
#define __cluster_dims__(...)
static inline void ig_cluster_begin() {}
static inline void ig_cluster_arrive() {}
static inline void ig_cluster_wait() {}
static inline void ig_put(float* p, unsigned, float v) { *p = v; }
static inline void ig_wait() {}
static inline void ig_go() {}
static inline void ig_prefetch(const void*) {}
static inline float ig_larger(float a, float b) { return (a > b || a != a) ? a : b; }
static inline float ig_smaller(float a, float b) { return (a < b || a != a) ? a : b; }

#define IG_EMU_DECLARE1(name)      \
  extern "C" float name##f(float); \
  extern "C" double name(double)
IG_EMU_DECLARE1(exp);
IG_EMU_DECLARE1(exp2);
IG_EMU_DECLARE1(expm1);
IG_EMU_DECLARE1(log);
IG_EMU_DECLARE1(log2);
IG_EMU_DECLARE1(log10);
IG_EMU_DECLARE1(log1p);
IG_EMU_DECLARE1(sqrt);
IG_EMU_DECLARE1(sin);
IG_EMU_DECLARE1(cos);
IG_EMU_DECLARE1(tan);
IG_EMU_DECLARE1(asin);
IG_EMU_DECLARE1(acos);
IG_EMU_DECLARE1(atan);
IG_EMU_DECLARE1(sinh);
IG_EMU_DECLARE1(cosh);
IG_EMU_DECLARE1(tanh);
IG_EMU_DECLARE1(asinh);
IG_EMU_DECLARE1(acosh);
IG_EMU_DECLARE1(atanh);
IG_EMU_DECLARE1(erf);
IG_EMU_DECLARE1(erfc);
IG_EMU_DECLARE1(floor);
IG_EMU_DECLARE1(ceil);
IG_EMU_DECLARE1(rint);
IG_EMU_DECLARE1(trunc);
IG_EMU_DECLARE1(fabs);
IG_EMU_DECLARE1(lgamma);
static inline float ig_exp_below(float x) { return exp2f(x * 1.4426950408889634f); }
extern "C" float hypotf(float, float);
extern "C" double hypot(double, double);
extern "C" float copysignf(float, float);
extern "C" double copysign(double, double);
extern "C" float fmaf(float, float, float);
extern "C" float powf(float, float);
extern "C" double pow(double, double);
extern "C" float fmodf(float, float);
extern "C" double fmod(double, double);
extern "C" float atan2f(float, float);
extern "C" double atan2(double, double);
