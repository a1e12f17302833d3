// See scan.h: which kernel takes a call, how lines are cut, and what a scan carries along.
#include "backend/cuda/kernels/scan.h"

#include <algorithm>

#include "backend/cuda/kernels/lines.h"

namespace ingot::cuda {
namespace {

const char* const kStates = R"cuda(
struct Sum {
  template <class A> IG_FN A neutral(A) { return A(0); }
  template <class A> IG_FN A both(A a, A b) { return A(a + b); }
};
struct Prod {
  template <class A> IG_FN A neutral(A) { return A(1); }
  template <class A> IG_FN A both(A a, A b) { return A(a * b); }
};
struct LogSum {  // log of the sum of exponentials
  IG_FN float neutral(float) { return ig_bits_f32(0xff800000u); }
  IG_FN double neutral(double) { return ig_bits_f64(0xfff0000000000000ull); }
  template <class A> IG_FN A both(A a, A b) {
    if (a != a || b != b) return a + b;
    const A hi = a > b ? a : b, lo = a > b ? b : a;
    return hi == lo && hi - hi != A(0) ? hi : hi + ig_log1p(ig_exp(lo - hi));
  }
};
struct Max { template <class A> IG_FN bool takes(A a, A b) { return b >= a; } };
struct Min { template <class A> IG_FN bool takes(A a, A b) { return b <= a; } };
// What a scan carries: S, made of element k by of(), combined by both() (b comes later), stored as result().
template <class D, class Op> struct Values {
  typedef typename D::Memory T;
  typedef typename D::Memory R;
  typedef typename D::Compute A;
  struct S { A v; };
  IG_FN S nothing() { S s; s.v = Op::neutral(A(0)); return s; }
  IG_FN S of(T x, long long) { S s; s.v = D::up(x); return s; }
  IG_FN R result(S s) { return D::down(s.v); }
  IG_FN S both(S a, S b) { S s; s.v = Op::both(a.v, b.v); return s; }
};
// The place of the largest or smallest so far: of several the last one, NaN before all.
template <class D, class Op> struct Places {
  typedef typename D::Memory T;
  typedef long long R;
  typedef typename D::Compute A;
  struct S { A v; long long at; };
  IG_FN S nothing() { S s; s.v = A(0); s.at = -1; return s; }
  IG_FN S of(T x, long long k) { S s; s.v = D::up(x); s.at = k; return s; }
  IG_FN R result(S s) { return s.at; }
  IG_FN S both(S a, S b) {
    if (a.at < 0) return b;
    if (b.at < 0) return a;
    return b.v != b.v || (a.v == a.v && Op::takes(a.v, b.v)) ? b : a;
  }
};
)cuda";

}  // namespace

std::string scan_text() { return std::string(kLinesText) + kStates; }

std::string scan_state(const LibrarySpec& spec) {
  const DType t = spec.operands[1].dtype;
  switch (spec.attrs.as<ScanAttrs>().kind) {
    case ScanKind::Sum:
      return instance("Values", t, "Sum");
    case ScanKind::Prod:
      return instance("Values", t, "Prod");
    case ScanKind::LogSum:
      return instance("Values", t, "LogSum");
    case ScanKind::ArgMax:
      return instance("Places", t, "Max");
    case ScanKind::ArgMin:
      return instance("Places", t, "Min");
  }
  return {};
}

const char* scan_refuses(const LibrarySpec& spec) {
  return spec.operands[1].shape.numel() / 32 < (int64_t{1} << 31) ? nullptr
                                                                  : "it has too many elements";
}

CudaKernel scan(const LibrarySpec& spec, int multiprocessors) {
  const OperandSpec &out = spec.operands[0], &in = spec.operands[1];
  const int axis = spec.attrs.as<ScanAttrs>().axis;
  ScanParams p{};
  set_lines(p, spec);
  p.length = in.shape[axis];
  p.out_stride = out.stride[axis], p.in_stride = in.stride[axis];
  const bool rows = p.in_stride == 1 || p.in_stride == -1 || p.lines < 32;
  // A block's share of a line, or a thread's: enough of them to fill the device.
  const int64_t wanted = rows ? multiprocessors * 4 : multiprocessors * 1024,
                least = rows ? 8192 : 64;
  p.chunk = p.length;
  if (p.lines < wanted && p.length > 2 * least) {
    const int64_t chunks =
        std::min<int64_t>((wanted + p.lines - 1) / p.lines, (p.length + least - 1) / least);
    p.chunk = (p.length + chunks - 1) / chunks;
    p.chunk = (p.chunk + least - 1) / least * least;
  }
  p.chunks = (p.length + p.chunk - 1) / p.chunk;
  CudaKernel k = rows ? scan_rows(spec, p) : scan_columns(spec, p);
  if (p.chunks > 1) k.launch.scratch_bytes = static_cast<size_t>(p.lines * p.chunks) * 16;
  return k;
}

}  // namespace ingot::cuda
