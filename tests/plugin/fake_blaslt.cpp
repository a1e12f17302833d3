// cuBLASLt for the fake CUDA machine: column-major products done naively, in float64.
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>

#include "plugin/fake_machine.h"

namespace {

struct Layout {
  int type;
  uint64_t rows, cols;
  int64_t ld;
  int32_t batch = 1;
  int64_t stride = 0;
};
struct Desc {
  int compute, scale;
  int32_t trans_a = 0, trans_b = 0, epilogue = 1, bias_type = -1;
  const void* bias = nullptr;
  void* aux = nullptr;
  int64_t aux_ld = 0;
};
struct Algo {
  uint64_t data[8];
};
struct Heuristic {
  Algo algo;
  size_t workspace;
  int state;
  float waves;
  int reserved[4];
};

float up(int type, uint16_t h) {
  uint32_t u;
  if (type == 14) {
    u = static_cast<uint32_t>(h) << 16;
  } else {
    uint32_t sign = (h & 0x8000u) << 16, e = (h >> 10) & 31, m = h & 1023;
    if (e == 0) return (sign ? -1.0f : 1.0f) * std::ldexp(static_cast<float>(m), -24);
    u = e == 31 ? sign | 0x7f800000u | (m << 13) : sign | ((e + 112) << 23) | (m << 13);
  }
  float f;
  std::memcpy(&f, &u, 4);
  return f;
}
uint16_t down(int type, double x) {
  // Nearest of the neighbours that truncation gives: exact enough for tests, and simple.
  float f = static_cast<float>(x);
  uint32_t u;
  std::memcpy(&u, &f, 4);
  if (type == 14) return static_cast<uint16_t>((u + 0x7fff + ((u >> 16) & 1)) >> 16);
  uint16_t sign = static_cast<uint16_t>((u >> 16) & 0x8000);
  double a = std::fabs(static_cast<double>(f));
  if (a >= 65520) return static_cast<uint16_t>(sign | 0x7c00);
  int e = a < 6.103515625e-5 ? -14 : static_cast<int>(std::floor(std::log2(a)));
  double q = std::nearbyint(std::ldexp(a, 10 - e));
  if (a < 6.103515625e-5) return static_cast<uint16_t>(sign | static_cast<int>(q));
  return static_cast<uint16_t>(sign + ((e + 14) << 10) + static_cast<int>(q));
}
double get(int type, const void* p, int64_t i) {
  if (type == 0) return static_cast<const float*>(p)[i];
  if (type == 1) return static_cast<const double*>(p)[i];
  return up(type, static_cast<const uint16_t*>(p)[i]);
}
void set(int type, void* p, int64_t i, double v) {
  if (type == 0)
    static_cast<float*>(p)[i] = static_cast<float>(v);
  else if (type == 1)
    static_cast<double*>(p)[i] = v;
  else
    static_cast<uint16_t*>(p)[i] = down(type, v);
}

int matmuls = 0;

int multiply(const Desc* d, const void* a, const Layout* la, const void* b, const Layout* lb,
             const void* c, void* out, const Layout* lo, double al, double be) {
  static const char* mode = std::getenv("FAKE_CUDA");
  if (mode && std::strcmp(mode, "null") == 0) return 0;
  auto m = static_cast<int64_t>(lo->rows), n = static_cast<int64_t>(lo->cols);
  auto k = static_cast<int64_t>(d->trans_a ? la->rows : la->cols);
  for (int64_t z = 0; z < lo->batch; ++z)
    for (int64_t j = 0; j < n; ++j)
      for (int64_t i = 0; i < m; ++i) {
        double sum = 0;
        for (int64_t l = 0; l < k; ++l)
          sum += get(la->type, a, z * la->stride + (d->trans_a ? l + i * la->ld : i + l * la->ld)) *
                 get(lb->type, b, z * lb->stride + (d->trans_b ? j + l * lb->ld : l + j * lb->ld));
        int64_t at = z * lo->stride + i + j * lo->ld;
        double v = al * sum + (be != 0 ? be * get(lo->type, c, at) : 0);
        if (d->epilogue & 4) v += get(d->bias_type < 0 ? lo->type : d->bias_type, d->bias, i);
        if (d->epilogue & 2) v = v > 0 ? v : 0;
        if (d->epilogue == 192) {  // the gradient of GELU
          double x = get(lo->type, d->aux, i + j * d->aux_ld);
          double t = std::tanh(0.7978845608028654 * (x + 0.044715 * x * x * x));
          v *= 0.5 * (1 + t) +
               0.5 * x * (1 - t * t) * 0.7978845608028654 * (1 + 3 * 0.044715 * x * x);
        }
        if (d->epilogue & 32) {
          if (d->epilogue & 128) set(lo->type, d->aux, i + j * d->aux_ld, v);
          v = 0.5 * v * (1 + std::tanh(0.7978845608028654 * (v + 0.044715 * v * v * v)));
        }
        set(lo->type, out, at, v);
      }
  // The sums of an operand over the inner dim.
  if (d->epilogue & (256 | 512)) {
    const bool of_a = d->epilogue & 256;
    const Layout* l = of_a ? la : lb;
    const void* p = of_a ? a : b;
    const bool inner_rows = of_a ? d->trans_a != 0 : d->trans_b == 0;
    for (int64_t i = 0; i < (of_a ? m : n); ++i) {
      double sum = 0;
      for (int64_t j = 0; j < k; ++j)
        sum += get(l->type, p, inner_rows ? j + i * l->ld : i + j * l->ld);
      set(lo->type, const_cast<void*>(d->bias), i, sum);
    }
  }
  return 0;
}

}  // namespace

extern "C" {
int fake_cuda_matmuls() { return matmuls; }

int cublasLtCreate(void** h) { return *h = new int, 0; }
size_t cublasLtGetVersion() { return 130000; }
const char* cublasLtGetStatusName(int) { return "FAKE_STATUS"; }
int cublasLtMatrixLayoutCreate(Layout** l, int type, uint64_t rows, uint64_t cols, int64_t ld) {
  if (ld < static_cast<int64_t>(rows)) return 7;
  return *l = new Layout{type, rows, cols, ld}, 0;
}
int cublasLtMatrixLayoutDestroy(Layout* l) { return delete l, 0; }
int cublasLtMatrixLayoutSetAttribute(Layout* l, int a, const void* v, size_t n) {
  if (a == 5 && n == 4) return std::memcpy(&l->batch, v, n), 0;
  if (a == 6 && n == 8) return std::memcpy(&l->stride, v, n), 0;
  return 7;
}
int cublasLtMatmulDescCreate(Desc** d, int compute, int scale) {
  return *d = new Desc{compute, scale}, 0;
}
int cublasLtMatmulDescDestroy(Desc* d) { return delete d, 0; }
int cublasLtMatmulDescSetAttribute(Desc* d, int a, const void* v, size_t n) {
  if (n != (a == 8 || a == 11 || a == 12 ? 8u : 4u)) return 7;
  void* to = a == 3    ? static_cast<void*>(&d->trans_a)
             : a == 4  ? &d->trans_b
             : a == 7  ? &d->epilogue
             : a == 26 ? &d->bias_type
             : a == 8  ? static_cast<void*>(&d->bias)
             : a == 11 ? static_cast<void*>(&d->aux)
             : a == 12 ? &d->aux_ld
                       : nullptr;
  if (!to) return 7;
  return std::memcpy(to, v, n), 0;
}
int cublasLtMatmulPreferenceCreate(void** p) { return *p = new int, 0; }
int cublasLtMatmulPreferenceDestroy(void* p) { return delete static_cast<int*>(p), 0; }
int cublasLtMatmulPreferenceSetAttribute(void*, int a, const void*, size_t n) {
  return n == (a == 1 ? 8u : 4u) ? 0 : 7;
}
int cublasLtMatmulAlgoGetHeuristic(void*, Desc* d, Layout* la, Layout* lb, Layout*, Layout*, void*,
                                   int, Heuristic* h, int* n) {
  // As the real one: rows of the second result begin at multiples of 16 bytes.
  if ((d->epilogue & 128) && d->aux_ld % 8) return *n = 0, 15;
  if ((d->epilogue & (256 | 512)) && (la->ld % 8 || lb->ld % 8)) return *n = 0, 15;
  for (int i = 0; i < 2; ++i)
    h[i] = {{{1, static_cast<uint64_t>(i)}}, static_cast<size_t>(i) << 20, 0, 1, {}};
  return *n = 2, 0;
}
int cublasLtMatmulAlgoCheck(void*, Desc*, Layout*, Layout*, Layout*, Layout*, const Algo* a,
                            Heuristic* h) {
  *h = {*a, static_cast<size_t>(a->data[1]) << 20, 0, 1, {}};
  return a->data[0] == 1 ? 0 : 7;
}
int cublasLtMatmul(void*, Desc* desc, const void* alpha, const void* a, Layout* la, const void* b,
                   Layout* lb, const void* beta, const void* c, Layout*, void* out, Layout* lo,
                   const Algo* algo, void* workspace, size_t bytes, void* stream) {
  if (!algo || algo->data[0] != 1 || (bytes && !workspace)) return 7;
  bool f64 = desc->scale == 1;
  double al = f64 ? *static_cast<const double*>(alpha) : *static_cast<const float*>(alpha);
  double be = f64 ? *static_cast<const double*>(beta) : *static_cast<const float*>(beta);
  return fake_cuda_put(stream, [d = *desc, a, x = *la, b, y = *lb, c, out, z = *lo, al, be] {
    return ++matmuls, multiply(&d, a, &x, b, &y, c, out, &z, al, be);
  });
}
}
