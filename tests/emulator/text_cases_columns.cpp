// Kernels for which a thread keeps what belongs to its columns: sweeps over rows, windows. On a
// machine of one multiprocessor these need few elements.
#include "emulator/spec_builder.h"
#include "emulator/text_cases.h"

namespace ingot::test {
namespace {

const CudaTarget kSmall{.multiprocessors = 1};

std::string name(DType t) { return std::string(name_of(t)); }

Affine last_axis(const SpecBuilder& s) {
  std::vector<bool> keep(s.k.extent.size());
  keep.back() = true;
  return s.dense(keep);
}

/// (x - mean) * (rsqrt(|variance| + 0.5) * weight) + bias, in float32.
int normalised(SpecBuilder& s, int x, const Affine& column) {
  auto vector = [&] { return s.load(float32, column); };
  int scale = s.compute(Op::Rsqrt,
                        s.compute(Op::Add, s.compute(Op::Abs, vector()), s.constant(float32, 0.5)));
  int y = s.compute(Op::Sub, s.cast(float32, x), vector());
  return s.compute(Op::Add, s.compute(Op::Mul, y, s.compute(Op::Mul, scale, vector())), vector());
}

KernelSpec batch_norm_relu(DType t, std::vector<int64_t> extent, bool in_place = false,
                           int64_t pad = 0) {
  int axes = static_cast<int>(extent.size());
  SpecBuilder s(std::move(extent), axes);
  Affine map = s.dense();
  if (pad > 0) map = s.affine({s.k.extent[1] + pad, 1}, 8);
  int x = s.load(t, map);
  int y = s.compute(Op::Relu, s.cast(t, normalised(s, x, last_axis(s))));
  if (in_place)
    s.store_into(s.k.instrs[x].buffer, y);
  else
    s.store(y, map, axes == 3);
  return s.k;
}

/// Batch norm's gradient with the mask of a ReLU and a gradient that one axis shares, and a second
/// result.
KernelSpec batch_norm_gradient(int64_t n, int64_t hw, int64_t c) {
  SpecBuilder s({n, hw, c}, 3);
  int mask = s.load(bool_), g = s.load(bfloat16, s.affine({c, 0, 1}));
  g = s.cast(float32, s.where(mask, g, s.constant(bfloat16, 0)));
  Affine column = last_axis(s);
  int d =
      s.compute(Op::Sub, g, s.compute(Op::Mul, s.load(float32, column), s.constant(float32, 0.25)));
  for (int n_out = 0; n_out < 2; ++n_out) {
    int x = normalised(s, s.load(bfloat16), column);
    s.store(s.cast(n_out == 0 ? bfloat16 : float16, s.compute(Op::Sub, d, x)));
  }
  s.store(s.load(float32, column));   // a column's value, written to every row
  s.store(s.constant(float32, 1.5));  // and a constant
  return s.k;
}

/// A map with random numbers, an indexed load and an argument beside its columns.
KernelSpec mixed_sweep(int64_t rows, int64_t c) {
  SpecBuilder s({rows, c}, 2);
  int u = s.uniform(float32, s.random(s.dense(), 0, 5));
  int index = s.cast(int64, s.compute(Op::Abs, s.load(int32, s.affine({1, 0}))));
  int row = s.load_indirect(float32, s.affine({0, 1}), index, c, 14);
  int y = s.compute(Op::Mul, normalised(s, row, last_axis(s)), s.arg(float32, 1));
  s.store(s.where(s.compute(Op::Lt, u, s.constant(float32, 0.5)), y, s.constant(float32, 0)));
  s.store(s.compute(Op::Add, s.index(s.affine({0, 3}, 2)), s.index(s.affine({5, 0}))));
  return s.k;
}

struct Window {
  int64_t n = 2, out = 14, c = 64, k = 3, stride = 2, pad = 1;
};

/// Pooling over [n, out, out, c | k, k], channels last.
struct Pooling {
  explicit Pooling(const Window& z) : w(z), s({z.n, z.out, z.out, z.c, z.k, z.k}, 4) {}
  int64_t size() const { return (w.out - 1) * w.stride + w.k - 2 * w.pad; }
  Affine place(int axis) const {
    std::vector<int64_t> stride(6);
    stride[1 + axis] = w.stride;
    stride[4 + axis] = 1;
    return {-w.pad, stride};
  }
  void bound(int i, double fill) {
    for (int axis : {0, 1}) s.bound(i, place(axis), size(), fill);
  }
  int input(DType t, double fill) {
    const int64_t h = size(), row = h * w.c;
    int x = s.load(t, s.affine({h * row, w.stride * row, w.stride * w.c, 1, row, w.c}));
    s.k.instrs[x].map.offset = -w.pad * (row + w.c);
    bound(x, fill);
    return x;
  }
  int vector() { return s.load(float32, s.affine({0, 0, 0, 1, 0, 0})); }
  int bounded_vector(double fill) {
    int v = vector();
    bound(v, fill);
    return v;
  }
  int inside() {
    int i = s.constant(bool_, 1);
    s.k.instrs[i].kind = InstrKind::InBounds;
    s.k.instrs[i].level = Level::Elem;
    bound(i, 0);
    return i;
  }
  Window w;
  SpecBuilder s;
};

/// Max pooling with positions of what a batch norm and a ReLU make of the input.
KernelSpec max_pool(DType t, const Window& w, bool keeps_fill = false) {
  Pooling p(w);
  SpecBuilder& s = p.s;
  int y = s.cast(float32, p.input(t, 0));
  y = s.compute(Op::Mul, s.compute(Op::Sub, y, p.bounded_vector(0)), p.bounded_vector(2));
  y = s.cast(t, s.compute(Op::Add, y, p.bounded_vector(0.25)));
  if (!keeps_fill) y = s.where(p.inside(), y, s.constant(t, -100));
  y = s.compute(Op::Round, s.compute(Op::Mul, y, s.constant(t, 4)));  // many are equal
  s.store(s.reduce(Op::Max, y));
  s.store(s.cast(uint8, s.reduce(Op::ArgMax, y)));
  s.store(s.reduce(Op::ArgMin, y));
  return s.k;
}

/// Sums and positions of one-dimensional windows, among them NaN.
KernelSpec window_sum(DType t, int64_t rows, int64_t c, int64_t k) {
  SpecBuilder s({rows, c, k}, 2);
  int x = s.load(t, s.affine({c, 1, c}));
  s.store(s.reduce(Op::Sum, x));
  if (is_float(t)) x = s.compute(Op::Sqrt, x);
  s.store(s.reduce(Op::ArgMax, x));
  s.store(s.reduce(Op::ArgMin, x));
  s.store(s.reduce(Op::Min, x));
  return s.k;
}

}  // namespace

void add_column_bench_cases(std::vector<TextCase>& cases) {
  auto add = [&](const std::string& what, KernelSpec k) {
    cases.push_back({what, {std::move(k)}});
  };
  add("batch norm and relu, 802816x64", batch_norm_relu(bfloat16, {802816, 64}));
  add("batch norm and relu, 802816x256", batch_norm_relu(bfloat16, {802816, 256}));
  add("batch norm gradients, 12544x2048", batch_norm_gradient(256, 49, 2048));
  add("max pooling 256x112x112x64", max_pool(bfloat16, {.n = 256, .out = 56}));
}

std::vector<TextCase> column_cases() {
  std::vector<TextCase> cases;
  auto add = [&](const std::string& what, KernelSpec k) {
    cases.push_back({what, {std::move(k)}, false, kSmall});
  };
  for (DType t : {bfloat16, float16, float32}) {
    add("sweep " + name(t), batch_norm_relu(t, {1024, 64}));
    add("sweep of odd rows " + name(t), batch_norm_relu(t, {1001, 72}));
    add("sweep of padded rows " + name(t),
        batch_norm_relu(t, {700, 99}, false, t == float32 ? 1 : 5));
    add("sweep in place " + name(t), batch_norm_relu(t, {37, 30, 64}, true));
    add("max pooling " + name(t), max_pool(t, {}));
    add("max pooling, fill seen " + name(t), max_pool(t, {}, true));
    add("max pooling 2x2 " + name(t), max_pool(t, {.k = 2, .stride = 2, .pad = 0}));
    add("max pooling 5x5 " + name(t),
        max_pool(t, {.n = 3, .out = 9, .c = 72, .k = 5, .stride = 1, .pad = 2}));
  }
  add("sweep of many columns", batch_norm_relu(bfloat16, {30, 2048}));
  add("sweep of 96 groups", batch_norm_relu(bfloat16, {50, 768}));
  add("sweep, predicated", batch_norm_relu(bfloat16, {11, 99, 64}));
  add("sweep of a gradient", batch_norm_gradient(20, 49, 64));
  add("sweep of a gradient, 56 columns", batch_norm_gradient(30, 49, 56));
  add("sweep beside an index", mixed_sweep(500, 64));
  for (int64_t k : {2, 3, 7, 11, 13, 16, 24})
    for (DType t : {float32, int8})
      add("windows of " + std::to_string(k) + " " + name(t), window_sum(t, 70, 128, k));
  return cases;
}

}  // namespace ingot::test
