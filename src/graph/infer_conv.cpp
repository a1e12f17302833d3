#include "graph/infer_conv.h"

namespace ingot {
namespace {

[[noreturn]] void fail(ErrorKind kind, Op op, std::string what, const SourceLoc& loc, std::string fix = {}) {
  throw Error(kind, info(op).name, std::move(what), loc, std::move(fix));
}

void check_pair(Op op, const Node& a, const Node& b, const SourceLoc& loc) {
  if (a.device != b.device)
    fail(ErrorKind::Device, op, "operands are on different devices: " + describe(a) + " and " + describe(b),
         loc, "move one of them with .to(\"" + (a.device.is_cpu() ? b : a).device.name() + "\")");
  if (a.dtype != b.dtype)
    fail(ErrorKind::DType, op, "operands differ in type: " + describe(a) + " and " + describe(b), loc,
         "convert one of them: .to(" + std::string(name_of(promote(a.dtype, b.dtype))) + ")");
  if (a.dtype == DType::Bool)
    fail(ErrorKind::DType, op, "is not defined for bool: " + describe(a), loc, "convert with .to(float32)");
}

void check_elements(Op op, const Dims& shape, const SourceLoc& loc) {
  double n = 1;
  for (int64_t s : shape) n *= static_cast<double>(s);
  if (n > 0x1p60)
    fail(ErrorKind::Shape, op, "shape " + to_string(shape) + " has more than 2^60 elements", loc);
}

// Do x, w and y belong to one convolution with these attributes?
void check_shapes(Op op, const Dims& x, const Dims& w, const Dims& y, const Attrs& a, const SourceLoc& loc) {
  const int n = x.size() - 2;
  bool ok = n >= 1 && n <= 3 && w.size() == n + 2 && y.size() == n + 2 && a.d0.size() == 2 * n &&
            a.d1.size() == 2 * n && a.i >= 1;
  ok = ok && x[0] == y[0] && w[1] * a.i == x[1] && w[0] == y[1] && w[0] % a.i == 0;
  for (int d = 0; ok && d < n; ++d) {
    ok = a.d0[d] >= 1 && a.d0[n + d] >= 1 && a.d1[d] >= 0 && a.d1[n + d] >= 0 && w[2 + d] >= 1;
    ok = ok && window_count(x[2 + d], w[2 + d], a.d0[d], a.d0[n + d], a.d1[d], a.d1[n + d]) == y[2 + d] &&
         y[2 + d] >= 1;
  }
  if (!ok)
    fail(ErrorKind::Shape, op,
         "input " + to_string(x) + ", weight " + to_string(w) + " and result " + to_string(y) +
             " do not fit stride and dilation " + to_string(a.d0) + ", padding " + to_string(a.d1) + " and " +
             std::to_string(a.i) + " groups",
         loc);
  check_elements(op, x, loc);
  check_elements(op, w, loc);
  check_elements(op, y, loc);
}

}  // namespace

Inferred infer_conv(Op op, std::span<Node* const> in, const Attrs& a, const SourceLoc& loc) {
  check_pair(op, *in[0], *in[1], loc);
  Inferred r{in[0]->dtype, a.shape, in[0]->device};
  if (op == Op::ConvGradInput) {
    check_shapes(op, a.shape, in[1]->shape, in[0]->shape, a, loc);
  } else if (op == Op::ConvGradWeight) {
    check_shapes(op, in[0]->shape, a.shape, in[1]->shape, a, loc);
  } else {
    const Dims &x = in[0]->shape, &w = in[1]->shape;
    const int n = x.size() - 2;
    r.shape = Dims::filled(x.size(), 0);
    if (n >= 1 && w.size() == n + 2 && a.d0.size() == 2 * n && a.d1.size() == 2 * n) {
      r.shape[0] = x[0];
      r.shape[1] = w[0];
      for (int d = 0; d < n; ++d)
        r.shape[2 + d] = window_count(x[2 + d], w[2 + d], std::max<int64_t>(1, a.d0[d]), a.d0[n + d], a.d1[d],
                                      a.d1[n + d]);
    }
    check_shapes(op, x, w, r.shape, a, loc);
  }
  return r;
}

Inferred infer_window(const Node& x, const Attrs& a, const SourceLoc& loc) {
  const int n = a.d0.size(), lead = x.rank() - n;
  bool ok = n >= 1 && lead >= 0 && a.d1.size() == n && a.shape.size() == x.rank() + n;
  for (int d = 0; ok && d < lead; ++d) ok = a.shape[d] == x.shape[d];
  for (int d = 0; ok && d < n; ++d) {
    int64_t o = a.shape[lead + d], k = a.shape[lead + n + d];
    ok = a.d0[d] >= 1 && a.d1[d] >= 1 && o >= 0 && k >= 1;
    ok = ok && (o == 0 || (o - 1) * a.d0[d] + (k - 1) * a.d1[d] < x.shape[lead + d]);
  }
  if (!ok)
    fail(ErrorKind::Shape, Op::Window,
         "windows " + to_string(a.shape) + " with strides " + to_string(a.d0) + " and dilations " +
             to_string(a.d1) + " leave " + describe(x),
         loc);
  check_elements(Op::Window, a.shape, loc);
  return {x.dtype, a.shape, x.device};
}

Inferred infer_fold(std::span<Node* const> in, const Attrs& a, const SourceLoc& loc) {
  const Node& v = *in[0];
  const int n = a.d1.size(), lead = a.shape.size() - n;
  const bool picks = in.size() == 2;
  bool ok =
      n >= 1 && lead >= 0 && in.size() <= 2 && a.d0.size() == 3 * n && v.rank() == lead + (picks ? n : 2 * n);
  for (int d = 0; ok && d < lead; ++d) ok = v.shape[d] == a.shape[d];
  for (int d = 0; ok && d < n; ++d) {
    int64_t o = v.shape[lead + d], k = a.d1[d];
    ok = a.d0[d] >= 1 && a.d0[n + d] >= 1 && a.d0[2 * n + d] >= 0 && k >= 1 &&
         (picks || v.shape[lead + n + d] == k);
    ok = ok && (o == 0 || (o - 1) * a.d0[d] - a.d0[2 * n + d] < a.shape[lead + d]);
  }
  if (ok && picks) ok = in[1]->shape == v.shape && !is_float(in[1]->dtype) && in[1]->device == v.device;
  if (!ok)
    fail(ErrorKind::Shape, Op::Fold, "windows " + describe(v) + " do not fold into " + to_string(a.shape),
         loc);
  if (v.dtype == DType::Bool)
    fail(ErrorKind::DType, Op::Fold, "is not defined for bool: " + describe(v), loc);
  check_elements(Op::Fold, a.shape, loc);
  return {v.dtype, a.shape, v.device};
}

}  // namespace ingot
