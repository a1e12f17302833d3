// What every kernel's text begins with. No #include: NVRTC knows the mathematical functions, vector
// types and intrinsics by itself, and compiles in a tenth of a second.
//
// The part under IG_EMULATED is left out when a C++ compiler builds the text for the emulator,
// which defines the same names (conversions and memory access with cache hints) itself.
#include "backend/cuda/emit/text.h"

namespace ingot {
namespace {

const char* const kDevice = R"cuda(
#ifndef IG_EMULATED
#define IG_FN static __device__ __forceinline__
#define IG_UNROLL _Pragma("unroll")
#define IG_DYNAMIC_SHARED(name) extern __shared__ __align__(16) unsigned char name[]
// A kernel may be launched while the previous one still runs. ig_wait() waits for that one's end, then lets the next one
// start as early; ig_go() before it lets it start even earlier. Before ig_wait() a kernel may read what nobody writes in
// this run, and what was written before a previous kernel that did not ig_go(); ig_prefetch() may prefetch anything.
#if __CUDA_ARCH__ >= 900
IG_FN void ig_wait() { asm volatile("griddepcontrol.wait;" ::: "memory"); asm volatile("griddepcontrol.launch_dependents;"); }
IG_FN void ig_go() { asm volatile("griddepcontrol.launch_dependents;"); }
#else
IG_FN void ig_wait() {}
IG_FN void ig_go() {}
#endif
// Blocks of a cluster (sm_90 on): v goes to p in the shared memory of block `rank`, between begin and wait of all
// threads, which say that the block is there, and arrive and wait, which say that all is there.
#if __CUDA_ARCH__ >= 900
IG_FN void ig_cluster_begin() { asm volatile("barrier.cluster.arrive.relaxed;" ::: "memory"); }
IG_FN void ig_cluster_arrive() { asm volatile("barrier.cluster.arrive.release;" ::: "memory"); }
IG_FN void ig_cluster_wait() { asm volatile("barrier.cluster.wait.acquire;" ::: "memory"); }
IG_FN void ig_put(float* p, unsigned rank, float v) {
  unsigned at;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(at) : "r"((unsigned)__cvta_generic_to_shared(p)), "r"(rank));
  asm volatile("st.shared::cluster.f32 [%0], %1;" :: "r"(at), "f"(v) : "memory");
}
#else
IG_FN void ig_cluster_begin() {}
IG_FN void ig_cluster_arrive() {}
IG_FN void ig_cluster_wait() {}
IG_FN void ig_put(float* p, unsigned, float v) { *p = v; }
#endif
IG_FN void ig_prefetch(const void* p) { asm volatile("prefetch.global.L2 [%0];" :: "l"(p)); }
IG_FN float ig_up_bf16(unsigned short h) { return __uint_as_float((unsigned)h << 16); }
IG_FN unsigned short ig_down_bf16(float x) { unsigned short h; asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(h) : "f"(x)); return h; }
IG_FN float ig_up_f16(unsigned short h) { float x; asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(h)); return x; }
IG_FN unsigned short ig_down_f16(float x) { unsigned short h; asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h) : "f"(x)); return h; }
// c += a b on the tensor cores: a 16 x 16, b 16 x 8, c 16 x 8 of a whole warp, cut into lanes as mma.m16n8k16 has them.
#define IG_MMA(name, type) \
  IG_FN void name(float* c, unsigned a0, unsigned a1, unsigned a2, unsigned a3, unsigned b0, unsigned b1) { \
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32." type "." type ".f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, " \
                 "{%0, %1, %2, %3};" \
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]) : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1)); \
  }
IG_MMA(ig_mma_bf16, "bf16")
IG_MMA(ig_mma_f16, "f16")
// Four 8 x 8 matrices of 16 bits from shared memory, lane l with the address of row l % 8 of matrix l / 8: lane l gets of each
// the elements 2 (l % 4) and one more of row l / 4, or, transposed, of column l / 4.
#define IG_MATRIX(name, trans) \
  IG_FN void name(unsigned* r, const void* p) { \
    asm volatile("ldmatrix.sync.aligned.m8n8.x4" trans ".shared.b16 {%0, %1, %2, %3}, [%4];" \
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"((unsigned)__cvta_generic_to_shared(p)) : "memory"); \
  }
IG_MATRIX(ig_matrix, "")
IG_MATRIX(ig_matrix_transposed, ".trans")
IG_FN float ig_bits_f32(unsigned u) { return __uint_as_float(u); }
IG_FN double ig_bits_f64(unsigned long long u) { return __longlong_as_double((long long)u); }
// exp of what is not above zero.
IG_FN float ig_exp_below(float x) { float y; asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x * 1.4426950408889634f)); return y; }
template <class X> IG_FN void ig_opaque(X& x) {
  IG_UNROLL for (int k = 0; k < (int)(sizeof(X) / 4); ++k) asm volatile("" : "+r"(((unsigned*)&x)[k]));
}
IG_FN unsigned ig_pair_bf16(float lo, float hi) { unsigned u; asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(u) : "f"(hi), "f"(lo)); return u; }
IG_FN unsigned ig_pair_f16(float lo, float hi) { unsigned u; asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(u) : "f"(hi), "f"(lo)); return u; }
IG_FN float ig_larger(float a, float b) { float r; asm("max.NaN.f32 %0, %1, %2;" : "=f"(r) : "f"(a), "f"(b)); return r; }
IG_FN float ig_smaller(float a, float b) { float r; asm("min.NaN.f32 %0, %1, %2;" : "=f"(r) : "f"(a), "f"(b)); return r; }
#endif
)cuda";

const char* const kMemory = R"cuda(
typedef unsigned long long ig_u64;
struct IgStatus { int code, site; long long value, extent; };
template <int K> struct IgParams {
  const double* args; const ig_u64* seeds; const ig_u64* offsets; IgStatus* status;
  unsigned char* scratch; const long long* table; long long n[K];
};
IG_FN void* ig_pointer(long long w) {
  return w < 0 ? *(void* const*)(w & 0x7fffffffffffffffll) : (void*)w;
}
IG_FN int ig_div(int x, long long m) { return (int)(((ig_u64)(unsigned)x * (unsigned)m) >> (int)(m >> 32)); }
// Which part a block works for: the last one whose first block is not after it.
IG_FN int ig_part(const long long* first, int parts, unsigned block) {
  int a = 0, b = parts;
  while (b - a > 1) { int c = (a + b) >> 1; if (__ldg(first + c) <= (long long)block) a = c; else b = c; }
  return a;
}

template <int B> struct IgRaw;
template <> struct IgRaw<1> { typedef unsigned char T; };
template <> struct IgRaw<2> { typedef unsigned short T; };
template <> struct IgRaw<4> { typedef unsigned T; };
template <> struct IgRaw<8> { typedef uint2 T; };
template <> struct IgRaw<16> { typedef uint4 T; };
template <int B> struct IgBytes { static const int value = B > 16 ? 16 : B; };
// V elements of memory type M, as stored in memory: what a thread loads, holds and stores at once.
template <class M, int V> struct alignas(IgBytes<(int)sizeof(M) * V>::value) IgVec { M e[V]; };

// Cache hints: 0 plain (memory this kernel also writes), 1 read-only, 2 read-only and seen once.
template <int H> struct IgLoad { template <class R> static __device__ __forceinline__ R get(const R* p) { return *p; } };
template <> struct IgLoad<1> { template <class R> static __device__ __forceinline__ R get(const R* p) { return __ldg(p); } };
template <> struct IgLoad<2> { template <class R> static __device__ __forceinline__ R get(const R* p) { return __ldcs(p); } };
// W elements per access, which the address is aligned for.
template <int W, int H, class M, int V> IG_FN void ig_load(IgVec<M, V>& r, const M* p) {
  const int w = W * (int)sizeof(M) > 16 ? 16 / (int)sizeof(M) : W;
  typedef typename IgRaw<w * (int)sizeof(M)>::T R;
  IG_UNROLL for (int k = 0; k < V; k += w) *(R*)(r.e + k) = IgLoad<H>::get((const R*)(p + k));
}
template <int W, int H, class M, int V> IG_FN void ig_store(M* p, const IgVec<M, V>& r) {
  const int w = W * (int)sizeof(M) > 16 ? 16 / (int)sizeof(M) : W;
  typedef typename IgRaw<w * (int)sizeof(M)>::T R;
  IG_UNROLL for (int k = 0; k < V; k += w) {
    R x = *(const R*)(r.e + k);
    if (H == 2) __stcs((R*)(p + k), x); else *(R*)(p + k) = x;
  }
}
template <int H, class M> IG_FN M ig_load1(const M* p) {
  typedef typename IgRaw<(int)sizeof(M)>::T R;
  union { R r; M m; } x; x.r = IgLoad<H>::get((const R*)p); return x.m;
}
template <int H, class M> IG_FN void ig_store1(M* p, M m) {
  typedef typename IgRaw<(int)sizeof(M)>::T R;
  union { M m; R r; } x; x.m = m; if (H == 2) __stcs((R*)p, x.r); else *p = m;
}
// Element j of a group of bfloat16, from the word that holds it.
template <int V> IG_FN float ig_elem_bf16(const IgVec<unsigned short, V>& r, int j) {
  unsigned w = ((const unsigned*)r.e)[j >> 1];
  return ig_bits_f32(j & 1 ? w & 0xffff0000u : w << 16);
}
// To the nearest bfloat16, as a float: one instruction, beside two and a slow one for there and back.
IG_FN float ig_nearest_bf16(float x) { return ig_bits_f32(ig_pair_bf16(0.0f, x)); }
template <class M, int V> IG_FN void ig_round_bf16(IgVec<M, V>& w, const float* v) {
  IG_UNROLL for (int k = 0; k < V; k += 2) *(unsigned*)(w.e + k) = ig_pair_bf16(v[k], v[k + 1]);
}
template <class M, int V> IG_FN void ig_round_f16(IgVec<M, V>& w, const float* v) {
  IG_UNROLL for (int k = 0; k < V; k += 2) *(unsigned*)(w.e + k) = ig_pair_f16(v[k], v[k + 1]);
}
// For comparing with a 32-bit index: a number that no index is when v is too large for one.
IG_FN int ig_narrow(long long v) { return v == (long long)(int)v ? (int)v : (int)0x80000000; }
// A position along an indexed axis; -1 and an error record when there is no such position.
IG_FN long long ig_index(long long v, long long n, long long site, IgStatus* s) {
  if (v >= 0 && v < n) return v;
  if (atomicCAS(&s->code, 0, 1) == 0) { s->site = (int)site; s->value = v; s->extent = n; }
  return -1;
}
)cuda";

const char* const kMath = R"cuda(
#define IG_MATH1(name, f32, f64) \
  IG_FN float name(float a) { return f32(a); } \
  IG_FN double name(double a) { return f64(a); }
IG_MATH1(ig_exp, expf, exp)
IG_MATH1(ig_exp2, exp2f, exp2)
IG_MATH1(ig_expm1, expm1f, expm1)
IG_MATH1(ig_log, logf, log)
IG_MATH1(ig_log2, log2f, log2)
IG_MATH1(ig_log10, log10f, log10)
IG_MATH1(ig_log1p, log1pf, log1p)
IG_MATH1(ig_sqrt, sqrtf, sqrt)
IG_MATH1(ig_sin, sinf, sin)
IG_MATH1(ig_cos, cosf, cos)
IG_MATH1(ig_tan, tanf, tan)
IG_MATH1(ig_asin, asinf, asin)
IG_MATH1(ig_acos, acosf, acos)
IG_MATH1(ig_atan, atanf, atan)
IG_MATH1(ig_sinh, sinhf, sinh)
IG_MATH1(ig_cosh, coshf, cosh)
IG_MATH1(ig_tanh, tanhf, tanh)
IG_MATH1(ig_asinh, asinhf, asinh)
IG_MATH1(ig_acosh, acoshf, acosh)
IG_MATH1(ig_atanh, atanhf, atanh)
IG_MATH1(ig_erf, erff, erf)
IG_MATH1(ig_erfc, erfcf, erfc)
IG_MATH1(ig_lgamma, lgammaf, lgamma)
IG_MATH1(ig_floor, floorf, floor)
IG_MATH1(ig_ceil, ceilf, ceil)
IG_MATH1(ig_round, rintf, rint)
IG_MATH1(ig_trunc, truncf, trunc)
// NaN wins.
template <class T> IG_FN T ig_max(T a, T b) { return (a > b || a != a) ? a : b; }
template <class T> IG_FN T ig_min(T a, T b) { return (a < b || a != a) ? a : b; }
IG_FN float ig_max(float a, float b) { return ig_larger(a, b); }
IG_FN float ig_min(float a, float b) { return ig_smaller(a, b); }
IG_FN float ig_abs(float a) { return fabsf(a); }
IG_FN double ig_abs(double a) { return fabs(a); }
template <class T> IG_FN T ig_abs(T a) { return a < T(0) ? T(-a) : a; }
template <class T> IG_FN T ig_not(T a) { return T(~a); }
template <class T> IG_FN T ig_add(T a, T b) { return T(a + b); }
IG_FN float ig_atan2(float a, float b) { return atan2f(a, b); }
IG_FN double ig_atan2(double a, double b) { return atan2(a, b); }
IG_FN float ig_hypot(float a, float b) { return hypotf(a, b); }
IG_FN double ig_hypot(double a, double b) { return hypot(a, b); }
IG_FN float ig_copysign(float a, float b) { return copysignf(a, b); }
IG_FN double ig_copysign(double a, double b) { return copysign(a, b); }
IG_FN float ig_pow(float a, float b) { return powf(a, b); }
IG_FN double ig_pow(double a, double b) { return pow(a, b); }
template <class T> IG_FN T ig_pow(T a, T b) {
  if (b < T(0)) return a == T(1) ? T(1) : a == T(-1) ? ((b & 1) ? T(-1) : T(1)) : T(0);
  T r = T(1);
  for (; b > T(0); b = T(b >> 1)) { if (b & 1) r = T(r * a); a = T(a * a); }
  return r;
}
// a / b for many a: r is b's reciprocal, and one step of Newton's method makes the quotient correctly rounded. Where
// that could fail (b or the quotient very large or very small, infinities) the quotients are not fine: divide.
IG_FN float ig_reciprocal(float b) {
  float m = fabsf(b);
  return m > 1e-30f && m < 1e30f ? 1.0f / b : ig_bits_f32(0x7fc00000u);
}
IG_FN float ig_quotient(float a, float b, float r, bool& fine) {
  float q = a * r;
  fine = fine && fabsf(q) < 1e30f;
  float z = fmaf(fmaf(-b, q, a), r, q);
  return q == 0.0f ? q : z;  // a zero keeps its sign
}
// Division: integers by zero give 0, and the smallest integer by -1 wraps.
IG_FN float ig_fmod(float a, float b) { return fmodf(a, b); }
IG_FN double ig_fmod(double a, double b) { return fmod(a, b); }
template <class T> IG_FN bool ig_minus_one(T b) { return T(-1) < T(0) && b == T(-1); }
template <class T> IG_FN T ig_fmod(T a, T b) { return b == T(0) || ig_minus_one(b) ? T(0) : T(a % b); }
template <class T> IG_FN T ig_floating_remainder(T a, T b) {
  T m = ig_fmod(a, b);
  return m != T(0) && (b < T(0)) != (m < T(0)) ? m + b : m;
}
IG_FN float ig_remainder(float a, float b) { return ig_floating_remainder(a, b); }
IG_FN double ig_remainder(double a, double b) { return ig_floating_remainder(a, b); }
template <class T> IG_FN T ig_remainder(T a, T b) {
  T m = ig_fmod(a, b);
  return m != T(0) && (b < T(0)) != (m < T(0)) ? T(m + b) : m;
}
template <class T> IG_FN T ig_floating_floordiv(T a, T b) {
  if (b == T(0)) return a / b;
  T m = ig_fmod(a, b), d = (a - m) / b;
  if (m != T(0) && (b < T(0)) != (m < T(0))) d -= T(1);
  if (d == T(0)) return a / b < T(0) || (a / b == T(0) && 1 / (a / b) < T(0)) ? -T(0) : T(0);
  T f = ig_floor(d);
  return d - f > T(0.5) ? f + T(1) : f;
}
IG_FN float ig_floordiv(float a, float b) { return ig_floating_floordiv(a, b); }
IG_FN double ig_floordiv(double a, double b) { return ig_floating_floordiv(a, b); }
template <class T> IG_FN T ig_floordiv(T a, T b) {
  if (b == T(0)) return T(0);
  if (ig_minus_one(b)) return T(T(0) - a);
  T q = T(a / b);
  return a % b != 0 && (a < T(0)) != (b < T(0)) ? T(q - 1) : q;
}
// Shifts by the width or more, or by a negative number: all bits leave.
template <class T> IG_FN T ig_shl(T a, T b) {
  return b < T(0) || (long long)b >= (long long)sizeof(T) * 8 ? T(0) : T((ig_u64)a << (int)b);
}
template <class T> IG_FN T ig_shr(T a, T b) {
  int most = (int)sizeof(T) * 8 - 1;
  return T(a >> (b < T(0) || (long long)b > most ? most : (int)b));
}
)cuda";

// One line: the preprocessor makes a string of it.
#define INGOT_SHARED(...) #__VA_ARGS__
const char* const kSpecial =
#include "graph/special_math.def"
    "\n";
#undef INGOT_SHARED

const char* const kReduce = R"cuda(
template <class T> struct IgArg { T v; long long i; };
template <class T> IG_FN T ig_sum(T a, T b) { return T(a + b); }
template <class T> IG_FN T ig_prod(T a, T b) { return T(a * b); }
// The better of two candidates: NaN before all, then the value, then the first position. i < 0: none yet.
template <class T> IG_FN IgArg<T> ig_first(IgArg<T> a, IgArg<T> b, bool better) {
  if (a.i < 0) return b;
  if (b.i < 0) return a;
  bool an = a.v != a.v, bn = b.v != b.v;
  if (an || bn) return an && bn ? (b.i < a.i ? b : a) : (bn ? b : a);
  return better || (b.v == a.v && b.i < a.i) ? b : a;
}
template <class T> IG_FN IgArg<T> ig_argmax(IgArg<T> a, IgArg<T> b) { return ig_first(a, b, b.v > a.v); }
template <class T> IG_FN IgArg<T> ig_argmin(IgArg<T> a, IgArg<T> b) { return ig_first(a, b, b.v < a.v); }
// The same for elements that come in their order, from the lowest value at position 0 on.
template <class T> struct IgBest { T v; int i; };
template <class T> IG_FN void ig_next_max(IgBest<T>& a, T x, int at) { if (a.v == a.v && !(x <= a.v)) { a.v = x; a.i = at; } }
template <class T> IG_FN void ig_next_min(IgBest<T>& a, T x, int at) { if (a.v == a.v && !(x >= a.v)) { a.v = x; a.i = at; } }
IG_FN float ig_shuffle(float v, int m) { return __shfl_xor_sync(0xffffffffu, v, m); }
IG_FN double ig_shuffle(double v, int m) { return __shfl_xor_sync(0xffffffffu, v, m); }
IG_FN long long ig_shuffle(long long v, int m) { return __shfl_xor_sync(0xffffffffu, v, m); }
IG_FN int ig_shuffle(int v, int m) { return __shfl_xor_sync(0xffffffffu, v, m); }
IG_FN short ig_shuffle(short v, int m) { return (short)__shfl_xor_sync(0xffffffffu, (int)v, m); }
IG_FN signed char ig_shuffle(signed char v, int m) { return (signed char)__shfl_xor_sync(0xffffffffu, (int)v, m); }
IG_FN unsigned char ig_shuffle(unsigned char v, int m) { return (unsigned char)__shfl_xor_sync(0xffffffffu, (int)v, m); }
IG_FN float ig_from_lane0(float v) { return __shfl_sync(0xffffffffu, v, 0); }
IG_FN double ig_from_lane0(double v) { return __shfl_sync(0xffffffffu, v, 0); }
IG_FN long long ig_from_lane0(long long v) { return __shfl_sync(0xffffffffu, v, 0); }
IG_FN int ig_from_lane0(int v) { return __shfl_sync(0xffffffffu, v, 0); }
IG_FN short ig_from_lane0(short v) { return (short)__shfl_sync(0xffffffffu, (int)v, 0); }
IG_FN signed char ig_from_lane0(signed char v) { return (signed char)__shfl_sync(0xffffffffu, (int)v, 0); }
IG_FN unsigned char ig_from_lane0(unsigned char v) { return (unsigned char)__shfl_sync(0xffffffffu, (int)v, 0); }
template <class T> IG_FN IgArg<T> ig_from_lane0(IgArg<T> a) {
  IgArg<T> r; r.v = ig_from_lane0(a.v); r.i = ig_from_lane0(a.i); return r;
}
template <class T> IG_FN IgArg<T> ig_shuffle(IgArg<T> a, int m) {
  IgArg<T> r; r.v = ig_shuffle(a.v, m); r.i = ig_shuffle(a.i, m); return r;
}
)cuda";

const char* const kRandom = R"cuda(
// Philox 4x32-10: four words per counter.
IG_FN void ig_philox(ig_u64 counter, ig_u64 key, int* out) {
  unsigned c0 = (unsigned)counter, c1 = (unsigned)(counter >> 32), c2 = 0, c3 = 0;
  unsigned k0 = (unsigned)key, k1 = (unsigned)(key >> 32);
  IG_UNROLL for (int r = 0; r < 10; ++r) {
    unsigned h0 = __umulhi(0xD2511F53u, c0), l0 = 0xD2511F53u * c0, h1 = __umulhi(0xCD9E8D57u, c2), l1 = 0xCD9E8D57u * c2;
    c0 = h1 ^ c1 ^ k0; c2 = h0 ^ c3 ^ k1; c1 = l1; c3 = l0;
    k0 += 0x9E3779B9u; k1 += 0xBB67AE85u;
  }
  out[0] = (int)c0; out[1] = (int)c1; out[2] = (int)c2; out[3] = (int)c3;
}
IG_FN int ig_philox1(ig_u64 counter, ig_u64 key, int word) {
  int w[4]; ig_philox(counter, key, w);
  return word == 0 ? w[0] : word == 1 ? w[1] : word == 2 ? w[2] : w[3];
}
IG_FN float ig_uniform_f32(int bits) { return (float)((unsigned)bits >> 8) * 5.9604644775390625e-8f; }
IG_FN double ig_uniform_f64(int bits) { return (double)(unsigned)bits * 2.3283064365386963e-10; }
)cuda";

}  // namespace

const std::string& cuda_prelude() {
  static const std::string text =
      std::string(kDevice) + kMemory + kMath + kSpecial + kReduce + kRandom;
  return text;
}

}  // namespace ingot
