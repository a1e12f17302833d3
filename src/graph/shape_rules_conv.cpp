#include "graph/shape_rules.h"

namespace ingot::shape_rules {
namespace {

void check_pair(Op op, const Node& a, const Node& b, const SourceLoc& loc) {
  if (a.device != b.device)
    fail(ErrorKind::Device, op,
         "operands are on different devices: " + describe(a) + " and " + describe(b), loc,
         "move one of them with .to(\"" + (a.device.is_cpu() ? b : a).device.name() + "\")");
  if (a.dtype != b.dtype)
    fail(ErrorKind::DType, op, "operands differ in type: " + describe(a) + " and " + describe(b),
         loc, "convert one of them: .to(" + std::string(name_of(promote(a.dtype, b.dtype))) + ")");
  if (a.dtype == DType::Bool)
    fail(ErrorKind::DType, op, "is not defined for bool: " + describe(a), loc,
         "convert with .to(float32)");
}

// Do x, w and y belong to one convolution with these attributes?
void check_shapes(const ShapeCall& c, const Dims& x, const Dims& w, const Dims& y) {
  const ConvAttrs& a = c.attrs<ConvAttrs>();
  const int n = x.size() - 2;
  bool ok = n >= 1 && n <= 3 && w.size() == n + 2 && y.size() == n + 2 && a.groups >= 1;
  for (const Dims* d : {&a.stride, &a.dilation, &a.front, &a.behind}) ok = ok && d->size() == n;
  ok = ok && x[0] == y[0] && w[1] * a.groups == x[1] && w[0] == y[1] && w[0] % a.groups == 0;
  for (int d = 0; ok && d < n; ++d) {
    ok = a.stride[d] >= 1 && a.dilation[d] >= 1 && a.front[d] >= 0 && a.behind[d] >= 0 &&
         w[2 + d] >= 1;
    ok = ok &&
         window_count(x[2 + d], w[2 + d], a.stride[d], a.dilation[d], a.front[d], a.behind[d]) ==
             y[2 + d] &&
         y[2 + d] >= 1;
  }
  if (!ok)
    fail(ErrorKind::Shape, c.op,
         "input " + to_string(x) + ", weight " + to_string(w) + " and result " + to_string(y) +
             " do not fit: " + c.spec.attrs.text(),
         c.loc);
  for (const Dims* d : {&x, &w, &y}) check_shape(c.op, *d, c.loc);
}

Dims conv_result(const ConvAttrs& a, const Dims& x, const Dims& w) {
  const int n = x.size() - 2;
  Dims y = Dims::filled(x.size(), 0);
  if (n < 1 || w.size() != n + 2 || a.stride.size() != n || a.front.size() != n) return y;
  y[0] = x[0];
  y[1] = w[0];
  for (int d = 0; d < n; ++d)
    y[2 + d] = window_count(x[2 + d], w[2 + d], std::max<int64_t>(1, a.stride[d]), a.dilation[d],
                            a.front[d], a.behind[d]);
  return y;
}

}  // namespace

Inferred conv(const ShapeCall& c) {
  const Dims &a = c.in[0]->shape, &b = c.in[1]->shape;
  check_pair(c.op, *c.in[0], *c.in[1], c.loc);
  Inferred r{c.x().dtype, c.shape(), c.x().device};
  if (c.op == Op::Conv) r.shape = conv_result(c.attrs<ConvAttrs>(), a, b);
  if (c.op == Op::Conv) check_shapes(c, a, b, r.shape);
  if (c.op == Op::ConvGradInput) check_shapes(c, c.shape(), b, a);
  if (c.op == Op::ConvGradWeight) check_shapes(c, a, c.shape(), b);
  return r;
}

Inferred window(const ShapeCall& c) {
  const Node& x = c.x();
  const auto& [stride, dilation] = c.attrs<WindowAttrs>();
  const Dims& shape = c.shape();
  const int n = stride.size(), lead = x.rank() - n;
  bool ok = n >= 1 && lead >= 0 && dilation.size() == n && shape.size() == x.rank() + n;
  for (int d = 0; ok && d < lead; ++d) ok = shape[d] == x.shape[d];
  for (int d = 0; ok && d < n; ++d) {
    int64_t o = shape[lead + d], k = shape[lead + n + d];
    ok = stride[d] >= 1 && dilation[d] >= 1 && o >= 0 && k >= 1;
    ok = ok && (o == 0 || (o - 1) * stride[d] + (k - 1) * dilation[d] < x.shape[lead + d]);
  }
  if (!ok)
    fail(ErrorKind::Shape, c.op,
         "windows " + to_string(shape) + " with strides " + to_string(stride) + " and dilations " +
             to_string(dilation) + " leave " + describe(x),
         c.loc);
  check_shape(c.op, shape, c.loc);
  return {x.dtype, shape, x.device};
}

Inferred fold(const ShapeCall& c) {
  const Node& v = c.x();
  const FoldAttrs& a = c.attrs<FoldAttrs>();
  const Dims& shape = c.shape();
  const int n = a.window.size(), lead = shape.size() - n;
  const bool positions = c.in.size() == 2;
  bool ok = n >= 1 && lead >= 0 && c.in.size() <= 2 && v.rank() == lead + (positions ? n : 2 * n);
  for (const Dims* d : {&a.stride, &a.dilation, &a.front}) ok = ok && d->size() == n;
  for (int d = 0; ok && d < lead; ++d) ok = v.shape[d] == shape[d];
  for (int d = 0; ok && d < n; ++d) {
    int64_t o = v.shape[lead + d], k = a.window[d];
    ok = a.stride[d] >= 1 && a.dilation[d] >= 1 && a.front[d] >= 0 && k >= 1 &&
         (positions || v.shape[lead + n + d] == k);
    ok = ok && (o == 0 || (o - 1) * a.stride[d] - a.front[d] < shape[lead + d]);
  }
  if (ok && positions)
    ok = c.in[1]->shape == v.shape && !is_float(c.in[1]->dtype) && c.in[1]->device == v.device;
  if (!ok)
    fail(ErrorKind::Shape, c.op, "windows " + describe(v) + " do not fold into " + to_string(shape),
         c.loc);
  if (v.dtype == DType::Bool)
    fail(ErrorKind::DType, c.op, "is not defined for bool: " + describe(v), c.loc);
  check_shape(c.op, shape, c.loc);
  return {v.dtype, shape, v.device};
}

}  // namespace ingot::shape_rules
