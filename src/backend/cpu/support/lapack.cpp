// See lapack.h. Matrices are column-major: element (i, j) of a is at a[i + j * n].
#include "backend/cpu/support/lapack.h"

#include <dlfcn.h>

#include <cmath>
#include <utility>

#include "base/env.h"

namespace ingot::cpu {
namespace {

constexpr int kPlain = 48;  // up to this size the loops win over the calls

template <class T>
struct Lapack {
  void (*getrf)(const int*, const int*, T*, const int*, int*, int*) = nullptr;
  void (*getrs)(const char*, const int*, const int*, const T*, const int*, const int*, T*,
                const int*, int*, size_t) = nullptr;
  void (*trtrs)(const char*, const char*, const char*, const int*, const int*, const T*, const int*,
                T*, const int*, int*, size_t, size_t, size_t) = nullptr;
  void (*potrf)(const char*, const int*, T*, const int*, int*, size_t) = nullptr;
  explicit operator bool() const { return getrf && getrs && trtrs && potrf; }
};

struct Library {
  const char* name = "plain loops";
  Lapack<float> single;
  Lapack<double> twice;
  Library() {
    if (!env::flag("INGOT_LAPACK")) return;
    for (const char* file : {"liblapack.so.3", "libopenblas.so.0"}) {
      void* so = dlopen(file, RTLD_NOW | RTLD_LOCAL);
      if (!so) continue;
      auto find = [&](auto& f, const char* symbol) {
        f = reinterpret_cast<std::remove_reference_t<decltype(f)>>(dlsym(so, symbol));
      };
      find(single.getrf, "sgetrf_"), find(single.getrs, "sgetrs_"), find(single.trtrs, "strtrs_"),
          find(single.potrf, "spotrf_");
      find(twice.getrf, "dgetrf_"), find(twice.getrs, "dgetrs_"), find(twice.trtrs, "dtrtrs_"),
          find(twice.potrf, "dpotrf_");
      if (single && twice) {
        name = file[3] == 'l' ? "LAPACK (liblapack.so.3)" : "LAPACK (libopenblas.so.0)";
        return;
      }
      single = {}, twice = {};
    }
  }
};

const Library& lapack() {
  static const Library* l = new Library;
  return *l;
}
template <class T>
const Lapack<T>& calls() {
  if constexpr (sizeof(T) == 4)
    return lapack().single;
  else
    return lapack().twice;
}

}  // namespace

const char* lapack_name() { return lapack().name; }

template <class T>
int lu_factor(T* a, int n, int* pivots) {
  int info = 0;
  if (n > kPlain && calls<T>()) {
    calls<T>().getrf(&n, &n, a, &n, pivots, &info);
    return info;
  }
  for (int k = 0; k < n; ++k) {
    T* column = a + static_cast<int64_t>(k) * n;
    int best = k;
    for (int i = k + 1; i < n; ++i)
      if (std::fabs(column[i]) > std::fabs(column[best])) best = i;
    pivots[k] = best + 1;
    if (column[best] == 0) {
      info = info ? info : k + 1;
      continue;
    }
    if (best != k)
      for (int j = 0; j < n; ++j)
        std::swap(a[k + static_cast<int64_t>(j) * n], a[best + static_cast<int64_t>(j) * n]);
    for (int i = k + 1; i < n; ++i) column[i] /= column[k];
    for (int j = k + 1; j < n; ++j) {
      T* other = a + static_cast<int64_t>(j) * n;
      const T f = other[k];
      for (int i = k + 1; i < n; ++i) other[i] -= column[i] * f;
    }
  }
  return info;
}

template <class T>
void lu_solve(const T* lu, const int* pivots, bool transposed, T* b, int n, int k) {
  if (n > kPlain && calls<T>()) {
    int info = 0;
    const char trans = transposed ? 'T' : 'N';
    calls<T>().getrs(&trans, &n, &k, lu, &n, pivots, b, &n, &info, 1);
    return;
  }
  auto swap_rows = [&](int i) {
    if (pivots[i] != i + 1)
      for (int j = 0; j < k; ++j)
        std::swap(b[i + static_cast<int64_t>(j) * n],
                  b[pivots[i] - 1 + static_cast<int64_t>(j) * n]);
  };
  if (!transposed) {
    for (int i = 0; i < n; ++i) swap_rows(i);
    triangular_solve(lu, false, false, true, b, n, k);
    triangular_solve(lu, true, false, false, b, n, k);
  } else {
    triangular_solve(lu, true, true, false, b, n, k);
    triangular_solve(lu, false, true, true, b, n, k);
    for (int i = n - 1; i >= 0; --i) swap_rows(i);
  }
}

template <class T>
int triangular_solve(const T* a, bool upper, bool transposed, bool unit, T* b, int n, int k) {
  if (n > kPlain && calls<T>()) {
    int info = 0;
    const char uplo = upper ? 'U' : 'L', trans = transposed ? 'T' : 'N', diag = unit ? 'U' : 'N';
    calls<T>().trtrs(&uplo, &trans, &diag, &n, &k, a, &n, b, &n, &info, 1, 1, 1);
    return info;
  }
  for (int i = 0; i < n && !unit; ++i)
    if (a[i + static_cast<int64_t>(i) * n] == 0) return i + 1;
  const bool forward = upper == transposed;
  for (int c = 0; c < k; ++c) {
    T* x = b + static_cast<int64_t>(c) * n;
    for (int s = 0; s < n; ++s) {
      const int i = forward ? s : n - 1 - s;
      const T* column = a + static_cast<int64_t>(i) * n;
      const int from = upper ? 0 : i + 1,
                to = upper ? i : n;  // the other elements of column i within the triangle
      if (transposed) {              // row i of a^T is column i of a
        T sum = x[i];
        for (int j = from; j < to; ++j) sum -= column[j] * x[j];
        x[i] = unit ? sum : sum / column[i];
      } else {
        if (!unit) x[i] /= column[i];
        for (int j = from; j < to; ++j) x[j] -= column[j] * x[i];
      }
    }
  }
  return 0;
}

template <class T>
int cholesky_factor(T* a, int n) {
  if (n > kPlain && calls<T>()) {
    int info = 0;
    calls<T>().potrf("U", &n, a, &n, &info, 1);
    return info;
  }
  for (int j = 0; j < n; ++j) {
    T* column = a + static_cast<int64_t>(j) * n;
    for (int i = 0; i <= j; ++i) {
      const T* other = a + static_cast<int64_t>(i) * n;
      T sum = column[i];
      for (int k = 0; k < i; ++k) sum -= other[k] * column[k];
      if (i < j) {
        column[i] = sum / other[i];
      } else {
        if (!(sum > 0)) return j + 1;
        column[j] = std::sqrt(sum);
      }
    }
  }
  return 0;
}

#define INGOT_LAPACK(T)                                                    \
  template int lu_factor(T*, int, int*);                                   \
  template void lu_solve(const T*, const int*, bool, T*, int, int);        \
  template int triangular_solve(const T*, bool, bool, bool, T*, int, int); \
  template int cholesky_factor(T*, int);
INGOT_LAPACK(float)
INGOT_LAPACK(double)
#undef INGOT_LAPACK

}  // namespace ingot::cpu
