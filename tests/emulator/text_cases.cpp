// See text_cases.h.
#include "emulator/text_cases.h"

#include <algorithm>
#include <random>

#include "emulator/spec_builder.h"

namespace ingot::test {
namespace {

constexpr DType kAll[] = {float64, float32, float16, bfloat16, int64,
                          int32,   int16,   int8,    uint8,    bool_};

std::string name(DType t) { return std::string(name_of(t)); }

/// out = op(a), or op(a, b): every row of the elementwise table for every type it takes.
void add_elementwise(std::vector<TextCase>& cases) {
  for (DType t : kAll) {
    SpecBuilder s({1000}, 1);
    int a = s.load(t), b = s.load(t);
    for (int n = static_cast<int>(Op::Matmul) + 1; n < static_cast<int>(Op::Count_); ++n) {
      Op op = static_cast<Op>(n);
      TypeRule rule = info(op).rule;
      bool takes = rule == TypeRule::Float ? is_float(t)
                   : rule == TypeRule::Int ? !is_float(t)
                   : rule == TypeRule::Num ? t != bool_
                                           : true;
      if (takes && op == Op::Polygamma)  // orders are whole, and poles far away
        s.store(s.compute(op, s.constant(t, 2),
                          s.compute(Op::Add, s.compute(Op::Abs, b), s.constant(t, 0.5))));
      else if (takes)
        s.store(s.compute(op, a, info(op).arity == 2 ? b : -1));
    }
    cases.push_back({"elementwise " + name(t), {s.k}});
  }
}

void add_casts(std::vector<TextCase>& cases) {
  for (DType t : kAll) {
    SpecBuilder s({37, 24}, 2);
    int a = s.load(t);
    for (DType to : kAll) s.store(s.cast(to, a));
    cases.push_back({"casts from " + name(t), {s.k}});
  }
}

KernelSpec gelu(DType stored, std::vector<int64_t> extent, bool single = false) {
  SpecBuilder s(std::move(extent), 1);
  DType t = single ? float32 : stored;
  int x = s.cast(t, s.load(stored));
  int y = s.compute(
      Op::Mul, s.compute(Op::Mul, x, s.constant(t, 0.5)),
      s.compute(Op::Add,
                s.compute(Op::Erf, s.compute(Op::Mul, x, s.constant(t, 0.7071067811865475))),
                s.constant(t, 1)));
  s.store(s.cast(stored, y));
  return s.k;
}

KernelSpec adamw(int64_t n, DType grad) {
  SpecBuilder s({n}, 1);
  int p = s.load(float32), g = s.cast(float32, s.load(grad)), m = s.load(float32),
      v = s.load(float32);
  int lr = s.arg(float32, 0);
  int m2 = s.compute(Op::Add, s.compute(Op::Mul, m, s.constant(float32, 0.9)),
                     s.compute(Op::Mul, g, s.constant(float32, 0.1)));
  int v2 = s.compute(Op::Add, s.compute(Op::Mul, v, s.constant(float32, 0.99)),
                     s.compute(Op::Mul, s.compute(Op::Mul, g, g), s.constant(float32, 0.01)));
  int root =
      s.compute(Op::Add, s.compute(Op::Sqrt, s.compute(Op::Abs, v2)), s.constant(float32, 1e-3));
  int p2 = s.compute(Op::Sub, p, s.compute(Op::Mul, lr, s.compute(Op::Div, m2, root)));
  s.store_into(0, p2, true);
  s.store_into(2, m2, true);
  s.store_into(3, v2, true);
  return s.k;
}

void add_strided(std::vector<TextCase>& cases) {
  {  // a broadcast row, a broadcast column and a strided operand
    SpecBuilder s({6, 5, 64}, 3);
    int a = s.load(float32), b = s.load(float32, s.affine({0, 0, 1})),
        c = s.load(float32, s.affine({5, 1, 0}));
    int d = s.load(float32, s.affine({640, 128, 2}, 3));
    s.store(s.compute(Op::Add, s.compute(Op::Mul, a, b), s.compute(Op::Sub, c, d)));
    cases.push_back({"broadcasts and strides", {s.k}});
  }
  {  // flipped: a negative stride
    SpecBuilder s({10, 40}, 2);
    int a = s.load(int32, s.affine({40, -1}, 39));
    s.k.buffers[0].numel = 400;
    s.store(a);
    cases.push_back({"flip", {s.k}});
  }
  for (int64_t last : {37, 64, 3}) {  // padding on both sides of both axes
    SpecBuilder s({9, last}, 2);
    int64_t w = last - 2;
    int a = s.load(bfloat16, s.affine({w, 1}, -w - 1));
    s.k.buffers[0].numel = 7 * w;
    s.bound(a, s.affine({1, 0}, -1), 7, 2.5);
    s.bound(a, s.affine({0, 1}, -1), w, 2.5);
    s.store(a);
    cases.push_back({"padding", {s.k}});
  }
  for (DType t :
       {float32, bfloat16, bool_, float64}) {  // transposing, with a plain and a broadcast operand
    SpecBuilder s({3, 70, 45}, 3);
    int a = s.load(t, s.affine({3150, 1, 70})), b = s.load(t), c = s.load(t, s.affine({0, 1, 0}));
    s.store(s.compute(Op::Maximum, s.compute(Op::Maximum, a, b), c));
    s.store(s.compute(Op::Minimum, a, b), s.affine({3150, 1, 70}));
    cases.push_back({"transposing " + name(t), {s.k}});
  }
  for (DType t : {float32, bfloat16}) {
    SpecBuilder s({128, 64, 2}, 3);  // the other unit axis is the first
    int a = s.load(t, s.affine({1, 256, 128}));
    s.store(a, s.affine({128, 2, 1}));
    cases.push_back({"permuted " + name(t), {s.k}});
    SpecBuilder big({64, 128}, 2);
    big.store(big.load(t, big.affine({1, 64})));
    cases.push_back({"transpose 64x128 " + name(t), {big.k}});
  }
}

void add_indexed(std::vector<TextCase>& cases) {
  for (bool bad : {false, true}) {
    for (DType t : {float32, bfloat16}) {
      SpecBuilder s({12, 64}, 2);  // embedding: one index per row, vectors along it
      int index = s.compute(Op::Abs, s.load(int64, s.affine({1, 0})));
      int e = s.load_indirect(t, s.affine({0, 1}), index, 64, bad ? 5 : 9);
      s.store(e);
      cases.push_back({"embedding " + name(t), {s.k}, bad});
    }
    SpecBuilder s({12, 20}, 2);  // gather: an index per element
    int index = s.compute(Op::Abs, s.load(int32));
    int e = s.load_indirect(float32, s.affine({0, 1}), index, 20, bad ? 5 : 9);
    s.store(e);
    cases.push_back({"gather", {s.k}, bad});
  }
}

void add_random(std::vector<TextCase>& cases) {
  for (int64_t last : {64, 31}) {
    SpecBuilder s({7, last}, 2);
    int bits = s.random(s.dense(), 1, 1000), u = s.uniform(float32, bits);
    int keep = s.compute(Op::Ge, u, s.constant(float32, 0.1));
    int x = s.load(bfloat16);
    s.store(s.where(keep, x, s.constant(bfloat16, 0)));
    s.store(u);
    s.store(s.uniform(float64, bits));
    cases.push_back({"dropout " + std::to_string(last), {s.k}});
  }
  SpecBuilder s({33, 8}, 2);
  int i = s.index(s.affine({1, 0})), j = s.index(s.affine({0, 1}, -3));
  s.store(s.compute(Op::Ge, i, j));
  s.store(s.index(s.affine({8, 1}, 5)));
  cases.push_back({"indices", {s.k}});
}

KernelSpec sum_rows(DType t, DType sum, int64_t outer, int64_t inner) {
  SpecBuilder s({outer, inner}, 1);
  s.store(s.reduce(Op::Sum, s.cast(sum, s.load(t))));
  return s.k;
}

KernelSpec sum_columns(DType t, DType sum, int64_t rows, int64_t columns) {
  SpecBuilder s({columns, rows}, 1);
  s.store(s.reduce(Op::Sum, s.cast(sum, s.load(t, s.affine({1, columns})))));
  return s.k;
}

KernelSpec all_reductions(DType t, std::vector<int64_t> extent, int n_outer,
                          const Affine* map = nullptr) {
  SpecBuilder s(std::move(extent), n_outer);
  int a = map != nullptr ? s.load(t, *map) : s.load(t);
  for (Op op : {Op::Max, Op::Min, Op::ArgMax, Op::ArgMin, Op::Sum, Op::Prod})
    if (t != bool_ || (op != Op::Sum && op != Op::Prod)) s.store(s.reduce(op, a));
  return s.k;
}

KernelSpec softmax(DType t, int64_t outer, int64_t inner, bool column = false) {
  SpecBuilder s({outer, inner}, 1);
  Affine map = column ? s.affine({1, outer}) : s.dense();
  int x = s.cast(float32, s.load(t, map));
  int e = s.compute(Op::Exp, s.compute(Op::Sub, x, s.reduce(Op::Max, x)));
  s.store(s.cast(t, s.compute(Op::Div, e, s.reduce(Op::Sum, e))), map);
  return s.k;
}

KernelSpec layer_norm(DType t, int64_t outer, int64_t inner) {
  SpecBuilder s({outer, inner}, 1);
  int x = s.cast(float32, s.load(t)), w = s.load(float32, s.affine({0, 1})),
      b = s.load(float32, s.affine({0, 1}));
  int scale = s.constant(float32, 1.0 / static_cast<double>(inner));
  int mean = s.compute(Op::Mul, s.reduce(Op::Sum, x), scale);
  int d = s.compute(Op::Sub, x, mean);
  int var = s.compute(Op::Mul, s.reduce(Op::Sum, s.compute(Op::Mul, d, d)), scale);
  int r = s.compute(Op::Rsqrt, s.compute(Op::Add, var, s.constant(float32, 1e-5)));
  s.store(s.cast(t, s.compute(Op::Add, s.compute(Op::Mul, s.compute(Op::Mul, d, r), w), b)));
  s.store(mean);
  s.store(r);
  return s.k;
}

/// Cross-entropy with a label per row: max, sum of exponentials, the picked logit, and the gradient
/// in place.
KernelSpec cross_entropy(DType t, int64_t outer, int64_t inner, int64_t classes) {
  SpecBuilder s({outer, inner}, 1);
  int raw = s.load(t);
  int x = s.cast(float32, raw);
  int label = s.compute(Op::Abs, s.load(int64, s.affine({1, 0}), Level::Outer));
  int m = s.reduce(Op::Max, x);
  int e = s.compute(Op::Exp, s.compute(Op::Sub, x, m));
  int z = s.reduce(Op::Sum, e);
  int picked = s.load_indirect(t, s.affine({inner, 0}), label, 1, classes, Level::Outer);
  int loss =
      s.compute(Op::Sub, s.compute(Op::Add, s.compute(Op::Log, z), m), s.cast(float32, picked));
  s.store(loss);
  int hit = s.compute(Op::Eq, s.index(s.affine({0, 1})), label);
  int g = s.compute(Op::Sub, s.compute(Op::Div, e, z),
                    s.where(hit, s.constant(float32, 1), s.constant(float32, 0)));
  s.store_into(0, s.cast(t, g), true);
  return s.k;
}

KernelSpec softmax_gradient(int64_t outer, int64_t inner, DType t = float32) {
  SpecBuilder s({outer, inner}, 1);
  int y = s.cast(float32, s.load(t)), g = s.cast(float32, s.load(t));
  int dot = s.reduce(Op::Sum, s.compute(Op::Mul, y, g));
  s.store(s.cast(t, s.compute(Op::Mul, y, s.compute(Op::Sub, g, dot))));
  return s.k;
}

/// Its forward half.
KernelSpec cross_entropy_loss(DType t, int64_t outer, int64_t inner, int64_t classes) {
  SpecBuilder s({outer, inner}, 1);
  int x = s.cast(float32, s.load(t));
  int label = s.compute(Op::Abs, s.load(int64, s.affine({1, 0}), Level::Outer));
  int m = s.reduce(Op::Max, x);
  int z = s.reduce(Op::Sum, s.compute(Op::Exp, s.compute(Op::Sub, x, m)));
  int picked = s.load_indirect(t, s.affine({inner, 0}), label, 1, classes, Level::Outer);
  s.store(
      s.compute(Op::Sub, s.compute(Op::Add, s.compute(Op::Log, z), m), s.cast(float32, picked)));
  s.store(z);
  s.store(m);
  return s.k;
}

/// Batch norm over (N, HW) of [N, C, HW].
KernelSpec batch_norm(int64_t n, int64_t c, int64_t hw) {
  SpecBuilder s({c, n, hw}, 1);
  Affine map = s.affine({hw, c * hw, 1});
  int x = s.load(float32, map), scale = s.constant(float32, 1.0 / static_cast<double>(n * hw));
  int mean = s.compute(Op::Mul, s.reduce(Op::Sum, x), scale), d = s.compute(Op::Sub, x, mean);
  int var = s.compute(Op::Mul, s.reduce(Op::Sum, s.compute(Op::Mul, d, d)), scale);
  s.store(s.compute(Op::Mul, d,
                    s.compute(Op::Rsqrt, s.compute(Op::Add, var, s.constant(float32, 1e-3)))),
          map);
  return s.k;
}

}  // namespace

std::vector<TextCase> map_cases() {
  std::vector<TextCase> cases;
  add_elementwise(cases);
  add_casts(cases);
  add_strided(cases);
  add_indexed(cases);
  add_random(cases);
  for (DType t : {float32, bfloat16, float16, float64})
    for (int64_t n : {4096, 4099}) cases.push_back({"gelu " + name(t), {gelu(t, {n})}});
  {  // more numbers than a kernel's argument holds: they go to the table
    SpecBuilder s({3, 5, 7}, 3);
    int sum = s.load(float32);
    for (int64_t n = 2; n < 150; ++n)
      sum = s.compute(Op::Add, sum, s.load(float32, s.affine({35 * n, 7 * n, n}, n)));
    s.store(sum);
    cases.push_back({"many operands", {s.k}});
  }
  {  // an index beyond 32 bits
    SpecBuilder s({6, 40}, 2);
    int far = s.index(s.affine({int64_t{1} << 33, 3}, 5));
    s.store(far);
    s.store(
        s.compute(Op::Add, s.load(int64), s.compute(Op::Remainder, far, s.constant(int64, 1000))));
    cases.push_back({"64-bit map", {s.k}});
  }
  for (int count : {4, 8}) {  // as many tiles as shared memory holds, and more
    SpecBuilder s({40, 48}, 2);
    int sum = s.load(float64);
    for (int n = 0; n < count; ++n)
      sum = s.compute(Op::Add, sum, s.load(float64, s.affine({1, 40})));
    s.store(sum);
    cases.push_back({"transposing many", {s.k}});
  }
  SpecBuilder scalar({}, 0);
  scalar.store(scalar.compute(Op::Add, scalar.load(float32), scalar.arg(float32, 1)));
  cases.push_back({"0-d", {scalar.k}});
  cases.push_back(
      {"adamw of several",
       {adamw(3000, bfloat16), adamw(10, bfloat16), adamw(4096, bfloat16), adamw(1, bfloat16)}});
  cases.push_back({"adamw of one", {adamw(2049, float32)}});
  return cases;
}

std::vector<TextCase> reduce_cases() {
  std::vector<TextCase> cases;
  for (DType t : kAll) {
    cases.push_back({"reductions of rows " + name(t), {all_reductions(t, {9, 300}, 1)}});
    Affine column{0, {1, 20}};
    cases.push_back(
        {"reductions of columns " + name(t), {all_reductions(t, {20, 33}, 1, &column)}});
  }
  for (int64_t inner : {2, 3, 8, 31, 100, 1021, 1024, 5000})
    for (DType t : {float32, bfloat16}) {
      cases.push_back({"sum of rows " + name(t) + " " + std::to_string(inner),
                       {sum_rows(t, float32, 40, inner)}});
      cases.push_back({"sum of columns " + name(t) + " " + std::to_string(inner),
                       {sum_columns(t, float32, inner, 72)}});
    }
  for (int64_t n : {100, 50000}) cases.push_back({"full sum", {sum_rows(float32, float32, 1, n)}});
  SpecBuilder full({30000}, 0);
  int x = full.load(float32);
  full.store(full.compute(Op::Sqrt, full.reduce(Op::Sum, full.compute(Op::Mul, x, x))));
  full.store(full.reduce(Op::ArgMax, x));
  cases.push_back({"norm and argmax of all", {full.k}});
  {
    SpecBuilder s({3, 2000}, 1);
    int far = s.index(s.affine({int64_t{1} << 33, 1}));
    int v = s.compute(Op::Mul, s.cast(float64, far), s.load(float64));
    s.store(s.reduce(Op::Sum, v));
    s.store(s.reduce(Op::ArgMax, v));
    cases.push_back({"64-bit rows", {s.k}});
    SpecBuilder c({64, 3000}, 1);
    c.store(c.reduce(Op::Sum,
                     c.compute(Op::Mul, c.cast(float64, c.index(c.affine({1, int64_t{1} << 33}))),
                               c.load(float64, c.affine({1, 64})))));
    cases.push_back({"64-bit columns", {c.k}});
  }
  cases.push_back({"columns in two stages", {sum_columns(bfloat16, float32, 3000, 24)}});
  cases.push_back({"columns in two stages, odd", {sum_columns(float32, float32, 3000, 21)}});
  cases.push_back({"sums of several",
                   {sum_rows(float32, float32, 1, 50000), sum_rows(float32, float32, 1, 7),
                    sum_rows(float32, float32, 1, 9000)}});
  {  // an activation's gradient and the bias gradient in one pass
    SpecBuilder s({64, 500}, 1);
    Affine map = s.affine({1, 64});
    int g = s.load(bfloat16, map), y = s.load(bfloat16, map);
    int d = s.compute(Op::Mul, g, s.cast(bfloat16, s.compute(Op::Gt, y, s.constant(bfloat16, 0))));
    s.store(d, map);
    int sum = s.reduce(Op::Sum, s.cast(float32, d));
    s.store(s.cast(bfloat16, sum));
    cases.push_back({"gradient and bias gradient", {s.k}});
  }
  {  // kept axes on both sides, an outer operand in the epilogue
    SpecBuilder s({5, 32, 40}, 2);
    int v = s.load(float32, s.affine({1280, 1, 32}));
    int o = s.load(float32, s.affine({32, 1, 0}), Level::Outer);
    s.store(s.compute(Op::Add, s.reduce(Op::Max, s.compute(Op::Mul, v, o)), o));
    cases.push_back({"middle axis", {s.k}});
  }
  return cases;
}

std::vector<TextCase> row_cases() {
  std::vector<TextCase> cases;
  for (int64_t inner : {2, 5, 16, 100, 768, 1000, 1001, 4096, 4099, 9000})
    for (DType t : {float32, bfloat16}) {
      std::string tag = " " + name(t) + " " + std::to_string(inner);
      cases.push_back({"softmax" + tag, {softmax(t, 5, inner)}});
      cases.push_back({"layer norm" + tag, {layer_norm(t, 5, inner)}});
    }
  for (int64_t inner : {40, 700, 3000, 3001}) {
    cases.push_back(
        {"softmax of columns " + std::to_string(inner), {softmax(float32, 37, inner, true)}});
    cases.push_back({"softmax gradient " + std::to_string(inner), {softmax_gradient(6, inner)}});
    cases.push_back({"cross entropy", {cross_entropy(bfloat16, 6, inner, 40)}});
    cases.push_back({"cross entropy loss", {cross_entropy_loss(bfloat16, 6, inner, 40)}});
  }
  cases.push_back({"cross entropy, bad label", {cross_entropy(float32, 6, 48, 3)}, true});
  for (int64_t n :
       {700, 40000}) {  // written in place in the first round, read again in a later one
    SpecBuilder s({n}, 0);
    int x = s.load(float32), m = s.reduce(Op::Max, x);
    s.store_into(0, s.compute(Op::Relu, x));
    s.store(s.compute(Op::Sub, s.load_from(0, s.dense()), m));
    cases.push_back({"in place before it is read again", {s.k}});
  }
  cases.push_back(
      {"softmax gradient in bfloat16, held in pairs", {softmax_gradient(2, 30000, bfloat16)}});
  cases.push_back({"softmax, row in shared memory", {softmax(float32, 2, 40000)}});
  cases.push_back({"softmax, row read again", {softmax(float32, 2, 70001)}});
  cases.push_back({"cross entropy, row read again", {cross_entropy(float32, 2, 66000, 40)}});
  {  // the position of a column's maximum, used again: the widest partial results
    SpecBuilder s({128, 900}, 1);
    Affine map = s.affine({1, 128});
    int x = s.load(float32, map), at = s.reduce(Op::ArgMax, x);
    s.store(s.where(s.compute(Op::Eq, s.index(s.affine({0, 1})), at), x, s.constant(float32, 0)),
            map);
    cases.push_back({"argmax of columns as a mask", {s.k}});
  }
  cases.push_back({"batch norm", {batch_norm(4, 6, 49)}});
  cases.push_back({"batch norm, vectors", {batch_norm(4, 6, 64)}});
  cases.push_back({"softmax of several",
                   {softmax(float32, 5, 100), softmax(float32, 3, 64), softmax(float32, 9, 300)}});
  return cases;
}

std::vector<TextCase> bench_cases() {
  std::vector<TextCase> cases;
  constexpr int64_t M = 1 << 20;
  for (DType t : {float32, bfloat16}) {
    std::string tag = " " + name(t);
    cases.push_back({"gelu 64M" + tag, {gelu(t, {64 * M})}});
    cases.push_back({"gelu 64M+1" + tag, {gelu(t, {64 * M + 1})}});
    cases.push_back({"softmax 8192x8192" + tag, {softmax(t, 8192, 8192)}});
    cases.push_back({"softmax 8192x8191" + tag, {softmax(t, 8192, 8191)}});
    cases.push_back({"softmax 400Kx128" + tag, {softmax(t, 400000, 128)}});
    cases.push_back({"softmax of columns 4096x16384" + tag, {softmax(t, 16384, 4096, true)}});
    cases.push_back({"layer norm 8192x8192" + tag, {layer_norm(t, 8192, 8192)}});
    cases.push_back({"layer norm 65536x768" + tag, {layer_norm(t, 65536, 768)}});
    cases.push_back({"softmax gradient 8192x8192" + tag, {softmax_gradient(8192, 8192, t)}});
    cases.push_back({"softmax gradient 8192x32768" + tag, {softmax_gradient(8192, 32768, t)}});
    cases.push_back({"gelu in float32, 64M" + tag, {gelu(t, {64 * M}, true)}});
    cases.push_back(
        {"cross entropy loss 8192x50304" + tag, {cross_entropy_loss(t, 8192, 50304, 14)}});
    cases.push_back(
        {"cross entropy loss 8192x50257" + tag, {cross_entropy_loss(t, 8192, 50257, 14)}});
    cases.push_back({"cross entropy 8192x50304" + tag, {cross_entropy(t, 8192, 50304, 14)}});
    cases.push_back({"cross entropy 8192x50257" + tag, {cross_entropy(t, 8192, 50257, 14)}});
    cases.push_back({"sum of rows 8192x8192" + tag, {sum_rows(t, float32, 8192, 8192)}});
    cases.push_back({"sum of rows 1Mx64" + tag, {sum_rows(t, float32, M, 64)}});
    cases.push_back({"sum of columns 32768x3072" + tag, {sum_columns(t, float32, 32768, 3072)}});
    cases.push_back({"sum of columns 32768x768" + tag, {sum_columns(t, float32, 32768, 768)}});
    cases.push_back({"full sum 64M" + tag, {sum_rows(t, float32, 1, 64 * M)}});
    SpecBuilder s({8192, 8192}, 2);
    s.store(s.load(t, s.affine({1, 8192})));
    cases.push_back({"transpose 8192x8192" + tag, {s.k}});
    SpecBuilder h({32, 1024, 12, 64}, 4);  // heads to the front
    h.store(h.load(t), h.affine({786432, 64, 65536, 1}));
    cases.push_back({"permute of heads" + tag, {h.k}});
    SpecBuilder e({65536, 768}, 2);
    int row = e.load(t, e.affine({0, 1}));
    e.store(e.compute(Op::Relu, e.compute(Op::Add, e.load(t), row)));
    cases.push_back({"bias and relu 65536x768" + tag, {e.k}});
  }
  cases.push_back({"batch norm 64x256x3136", {batch_norm(64, 256, 3136)}});
  add_column_bench_cases(cases);
  std::vector<KernelSpec> parts;
  for (int layer = 0; layer < 12; ++layer)
    for (int64_t n :
         {768, 768, 2304 * 768, 2304, 768 * 768, 768, 768, 768, 3072 * 768, 3072, 3072 * 768, 768})
      parts.push_back(adamw(n, bfloat16));
  parts.push_back(adamw(50257 * 768, bfloat16));
  parts.push_back(adamw(1024 * 768, bfloat16));
  cases.push_back({"adamw of GPT-2 124M", parts});
  cases.push_back({"adamw of one, 64M", {adamw(64 * M, bfloat16)}});
  cases.push_back({"gelu 4K (latency)", {gelu(float32, {4096})}});
  cases.push_back({"softmax 64x1000 (latency)", {softmax(float32, 64, 1000)}});
  cases.push_back({"full sum 64K (latency)", {sum_rows(float32, float32, 1, 65536)}});
  return cases;
}

std::vector<TextCase> random_cases(int count, unsigned seed) {
  std::mt19937 gen(seed);
  auto pick = [&](int n) { return static_cast<int>(gen() % static_cast<unsigned>(n)); };
  std::vector<TextCase> cases;
  for (int c = 0; c < count; ++c) {
    int axes = 1 + pick(4), n_outer = pick(axes + 1);
    std::vector<int64_t> extent;
    for (int x = 0; x < axes; ++x) extent.push_back(int64_t{2} + pick(x == axes - 1 ? 90 : 9));
    if (pick(2)) extent.back() = (extent.back() + 7) / 8 * 8;
    SpecBuilder s(extent, n_outer);
    std::vector<int> values;
    auto random_map = [&](bool outer_only) {
      std::vector<int> order(axes);
      for (int x = 0; x < axes; ++x) order[x] = x;
      if (pick(3) == 0) std::shuffle(order.begin(), order.end(), gen);
      Affine a{pick(3) == 0 ? pick(9) : 0, std::vector<int64_t>(axes)};
      int64_t step = pick(6) == 0 ? 2 : 1;
      for (int n = axes - 1; n >= 0; --n) {
        int x = order[n];
        if (pick(5) == 0 || (outer_only && x >= n_outer)) continue;
        a.stride[x] = step;
        step *= extent[x];
      }
      return a;
    };
    DType t = pick(4) == 0 ? float64 : float32;
    int loads = 1 + pick(4);
    for (int n = 0; n < loads; ++n) {
      DType m =
          std::vector<DType>{float32, bfloat16, float16, float64, int32, int8, bool_}[pick(7)];
      bool outer = n_outer < axes && pick(4) == 0;
      int v = s.load(m, random_map(outer), outer ? Level::Outer : Level::Elem);
      if (!outer && pick(4) == 0) {
        Affine at{-pick(3), std::vector<int64_t>(axes)};
        int x = pick(axes);
        at.stride[x] = 1;
        s.bound(v, at, extent[x] - 1 - pick(2), 1);
      }
      values.push_back(s.cast(t, v));
    }
    auto step = [&] {
      const Op ops[] = {Op::Add,     Op::Sub,  Op::Mul,     Op::Maximum,
                        Op::Minimum, Op::Tanh, Op::Sigmoid, Op::Neg};
      Op op = ops[pick(8)];
      int a = values[pick(static_cast<int>(values.size()))],
          b = values[pick(static_cast<int>(values.size()))];
      values.push_back(s.compute(op, a, info(op).arity == 2 ? b : -1));
    };
    for (int n = 2 + pick(5); n > 0; --n) step();
    int rounds = n_outer < axes ? 1 + pick(3) : 0;
    for (int r = 0; r < rounds; ++r) {
      int elem = -1;
      for (int v : values)
        if (s.k.instrs[v].level == Level::Elem && (elem < 0 || pick(2))) elem = v;
      if (elem < 0) elem = s.cast(t, s.load(float32, s.dense())), values.push_back(elem);
      Op op = std::vector<Op>{Op::Sum, Op::Max, Op::Min}[pick(3)];
      int red = s.reduce(op, elem);
      values.push_back(s.compute(Op::Tanh, red));
      for (int n = pick(3); n > 0; --n) step();
    }
    int stores = 1 + pick(2);
    for (int n = 0; n < stores; ++n) {
      int v = values[values.size() - 1 - static_cast<size_t>(n)];
      s.store(pick(3) == 0 ? s.cast(bfloat16, v) : v);
    }
    cases.push_back({"random " + std::to_string(seed) + "/" + std::to_string(c), {s.k}});
  }
  return cases;
}

}  // namespace ingot::test
