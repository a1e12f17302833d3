// See library_cases.h.
#include "plugin/library_cases.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "plugin/case_parts.h"

namespace ingot::test {
namespace {

double gelu(double x) {
  return 0.5 * x * (1 + std::tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)));
}
double gelu_slope(double x) {
  const double h = 1e-4;
  return (gelu(x - 2 * h) - 8 * gelu(x - h) + 8 * gelu(x + h) - gelu(x + 2 * h)) / (12 * h);
}

void matmul_reference(const LibrarySpec& spec, CallMemory& m) {
  const auto& o = spec.operands;
  const size_t ia = static_cast<size_t>(spec.written), ib = ia + 1, more = ia + 2;
  int r = o[0].shape.size();
  int64_t n = 0;  // elements so far, in row-major order
  for_each(o[0].shape, [&](const Dims& at) {
    double sum = 0;
    Dims a = at, b = at;
    for (int64_t k = 0; k < o[ia].shape[r - 1]; ++k) {
      a[r - 1] = k;
      b[r - 2] = k;
      sum += value(o[ia], m.at(ia), place(o[ia], a)) * value(o[ib], m.at(ib), place(o[ib], b));
    }
    int64_t p = place(o[0], at);
    if (spec.accumulate) sum += value(o[0], m.at(0), p);
    if (spec.has(Epilogue::Bias))
      sum += value(o[more], m.at(more), o[more].offset + at[r - 1] * o[more].stride[0]);
    if (spec.has(Epilogue::Relu)) sum = std::max(sum, 0.0);
    if (spec.has(Epilogue::ReluGrad) && !(value(o[more], m.at(more), place(o[more], at)) > 0))
      sum = 0;
    if (spec.has(Epilogue::GeluTanhGrad))
      sum *= gelu_slope(value(o[more], m.at(more), o[more].offset + n));
    if (spec.has(Epilogue::BiasGrad) && at[r - 1] == 0) {
      double all = 0;
      for (int64_t k = 0; k < o[ia].shape[r - 1]; ++k) {
        a[r - 1] = k;
        all += value(o[ia], m.at(ia), place(o[ia], a));
      }
      write_element(o[1].dtype, m.at(1), o[1].offset + at[r - 2], {all, 0});
    }
    if (spec.has(Epilogue::GeluTanh)) {
      if (spec.written == 2) write_element(o[1].dtype, m.at(1), o[1].offset + n, {gelu(sum), 0});
      if (spec.written == 1) sum = gelu(sum);
    }
    write_element(o[0].dtype, m.at(0), p, {sum, static_cast<int64_t>(sum)});
    ++n;
  });
}

void scatter_reference(const LibrarySpec& spec, CallMemory& m) {
  const auto& o = spec.operands;
  const int axis = axis_of(spec);
  std::vector<double> sums(static_cast<size_t>(span(o[0])), 0.0);
  for_each(o[2].shape, [&](const Dims& at) {
    int64_t i = read_element(o[1].dtype, m.at(1), place(o[1], at)).i;
    if (i < 0) i += o[0].shape[axis];
    Dims to = at;
    to[axis] = i;
    sums[static_cast<size_t>(place(o[0], to))] += value(o[2], m.at(2), place(o[2], at));
  });
  for (size_t i = 0; i < sums.size(); ++i)
    write_element(o[0].dtype, m.at(0), static_cast<int64_t>(i),
                  {sums[i], static_cast<int64_t>(sums[i])});
}

}  // namespace

CallMemory::CallMemory(const LibrarySpec& spec, uint32_t seed, int64_t extent) {
  std::mt19937 gen(seed);
  for (size_t i = 0; i < spec.operands.size(); ++i) {
    const OperandSpec& o = spec.operands[i];
    int64_t n = span(o);
    bytes.push_back(static_cast<size_t>(n) * size_of(o.dtype));
    blocks.emplace_back(bytes.back() / 8 + 2, 0);
    for (int64_t k = 0; k < n; ++k) {
      auto whole = static_cast<int64_t>(gen() % 7) - (o.dtype == DType::UInt8 ? 0 : 3);
      if (extent && i + 2 == spec.operands.size())
        whole = static_cast<int64_t>(gen() % static_cast<uint64_t>(extent));
      double f = static_cast<double>(gen() % 2001) / 1000 - 1;
      static const double odd[] = {HUGE_VAL - HUGE_VAL, HUGE_VAL, -HUGE_VAL, 0.0, -0.0};
      if (spec.op == Op::Sort && gen() % 16 == 0) f = odd[gen() % 5];
      write_element(o.dtype, at(i), k, {f, whole});
    }
  }
}

// 0: none, 1: ReLU, 2: GELU.
static void add_activation(LibrarySpec& s, unsigned which) {
  if (which > 0) s.epilogues.set(which == 1 ? Epilogue::Relu : Epilogue::GeluTanh);
}

LibrarySpec random_matmul(std::mt19937& gen, bool library_types) {
  static const DType all[] = {float64, float32, float16, bfloat16, int64,
                              int32,   int16,   int8,    uint8};
  LibrarySpec s;
  s.op = Op::Matmul;
  s.unwritten_operands = gen() % 8;
  DType t = all[gen() % (library_types ? 4 : 9)], out = is_half(t) && gen() % 4 == 0 ? float32 : t;
  int64_t M = pick(gen, 1, 33), N = pick(gen, 1, 33), K = pick(gen, 1, gen() % 6 ? 33 : 1400);
  Dims a, b, o;
  for (int64_t d = pick(gen, 0, 3); d > 0; --d) {
    int64_t n = pick(gen, 1, 3);
    a.push_back(n), b.push_back(n), o.push_back(n);
  }
  a.push_back(M), a.push_back(K), b.push_back(K), b.push_back(N), o.push_back(M), o.push_back(N);
  bool shuffle = gen() % 2;
  s.operands = {operand(out, o, gen, gen() % 8 == 0), operand(t, a, gen, shuffle),
                operand(t, b, gen, shuffle)};
  if (gen() % 3 == 0)  // one b for the whole batch
    for (int d = 0; d < b.size() - 2; ++d) s.operands[2].stride[d] = 0;
  s.accumulate = gen() % 5 == 0;
  if (is_float(t) && gen() % 3 == 0) {
    s.epilogues.set(Epilogue::Bias);
    s.operands.push_back(operand(out, Dims{N}, gen, false));
    s.operands[3].stride = Dims{1};
  }
  if (is_float(t)) add_activation(s, gen() % 3);
  return s;
}

LibrarySpec random_gelu_matmul(std::mt19937& gen) {
  LibrarySpec s;
  s.op = Op::Matmul;
  const DType t = gen() % 2 ? bfloat16 : float16;
  const int64_t unit = gen() % 2 ? 8 : 1;  // the library wants multiples of 16 bytes
  const int64_t M = unit * pick(gen, 1, 9), N = unit * pick(gen, 1, 9), K = unit * pick(gen, 1, 9);
  const bool gradient = gen() % 2;
  s.epilogues.set(gradient ? Epilogue::GeluTanhGrad : Epilogue::GeluTanh);
  s.epilogues.set(Epilogue::KeepSum, !gradient);
  auto whole = [&](const Dims& shape) { return OperandSpec{t, shape, row_major(shape), 0}; };
  s.operands = {whole({M, N})};
  if (!gradient) s.operands.push_back(whole({1, M, N}));
  s.written = static_cast<int>(s.operands.size());
  s.operands.push_back(whole({M, K}));
  OperandSpec b = whole({N, K});  // a weight as stored, or transposed
  if (gen() % 2)
    b = whole({K, N});
  else
    b = {t, {K, N}, {1, K}, 0};
  s.operands.push_back(b);
  if (gradient) s.operands.push_back(whole({M, N}));
  if (!gradient && gen() % 3) {
    s.epilogues.set(Epilogue::Bias);
    s.operands.push_back({t, {N}, {1}, 0});
  }
  return s;
}

LibrarySpec random_bias_gradient(std::mt19937& gen) {
  LibrarySpec s;
  s.op = Op::Matmul;
  s.epilogues.set(Epilogue::BiasGrad);
  s.written = 2;
  static const DType types[] = {bfloat16, float16, float32};
  const DType t = types[gen() % 3];
  s.unwritten_operands = gen() % 16;
  const int64_t unit = gen() % 2 ? 8 : 1;
  const int64_t M = unit * pick(gen, 1, 9), N = unit * pick(gen, 1, 9), K = unit * pick(gen, 1, 30);
  s.operands = {{t, {M, N}, {N, 1}, 0},
                {t, {1, M}, {M, 1}, 0},
                {t, {M, K}, {1, M}, 0},
                {t, {K, N}, {N, 1}, 0}};
  if (gen() % 4 == 0) s.operands[0].stride = {1, M};  // written by columns
  return s;
}

LibrarySpec random_relu_gradient(std::mt19937& gen) {
  LibrarySpec s;
  s.op = Op::Matmul;
  s.epilogues.set(Epilogue::ReluGrad);
  s.unwritten_operands = gen() % 16;
  const int64_t M = pick(gen, 1, 40), N = pick(gen, 1, 40), K = pick(gen, 1, 70);
  s.operands = {operand(float32, {M, N}, gen, false), operand(float32, {M, K}, gen, gen() % 2),
                operand(float32, {K, N}, gen, gen() % 2),
                operand(float32, {M, N}, gen, gen() % 4 == 0)};
  return s;
}

LibrarySpec random_row_matmul(std::mt19937& gen) {
  static const DType all[] = {bfloat16, float16, float32};
  static const int64_t depths[] = {8, 64, 264, 768, 1600, 4104};
  LibrarySpec s;
  s.op = Op::Matmul;
  s.unwritten_operands = gen() % 2 ? 4 : 0;
  const DType t = all[gen() % 3], out = gen() % 3 == 0 ? float32 : t;
  const int64_t M = gen() % 2 ? 1 : pick(gen, 1, 9), K = depths[gen() % 6],
                pitch = K + 8 * pick(gen, 0, 2);
  const int64_t N = K < 100 && gen() % 4 == 0 ? 8500 : pick(gen, 1, 70);
  const bool batched = gen() % 2;  // with a batch dim of one
  auto shape = [&](int64_t a, int64_t b) { return batched ? Dims{1, a, b} : Dims{a, b}; };
  OperandSpec o{out, shape(M, N), row_major(shape(M, N)), pick(gen, 0, 3)};
  OperandSpec a{t, shape(M, K), row_major(shape(M, K)), 8 * pick(gen, 0, 2)};
  OperandSpec b{t, shape(K, N), row_major(shape(K, N)), 8 * pick(gen, 0, 2)};
  const int rank = a.shape.size();
  a.stride[rank - 2] = pitch;
  b.stride[rank - 2] = 1, b.stride[rank - 1] = pitch + (gen() % 8 == 0);  // rarely not aligned
  if (rank == 3) a.stride[0] = pitch * M, b.stride[0] = gen() % 2 ? 0 : pitch * N;
  s.operands = {o, a, b};
  s.accumulate = gen() % 5 == 0;
  if (gen() % 2) {
    s.epilogues.set(Epilogue::Bias);
    s.operands.push_back({gen() % 2 ? out : t, Dims{N}, Dims{1}, pick(gen, 0, 3)});
  }
  add_activation(s, gen() % 3);
  return s;
}

LibrarySpec random_scatter(std::mt19937& gen, bool rows) {
  static const DType all[] = {float64, float32, float16, bfloat16, int64,
                              int32,   int16,   int8,    uint8};
  LibrarySpec s;
  s.op = Op::ScatterAdd;
  s.site = 7;
  DType t = all[gen() % 9];
  int rank = static_cast<int>(pick(gen, 1, 4)), axis = static_cast<int>(pick(gen, 0, rank - 1));
  Dims shape, out;
  for (int d = 0; d < rank; ++d) {
    int64_t n = pick(gen, 1, 6), v = n;
    if (d == axis)
      n = rows ? pick(gen, 33, 900) : pick(gen, 1, 40),
      v = gen() % 3 ? pick(gen, 1, 20) : pick(gen, 200, 1000);
    shape.push_back(n);
    out.push_back(v);
  }
  s.attrs = IndexAttrs{axis};
  s.operands = {operand(t, out, gen, false), operand(gen() % 2 ? int64 : int32, shape, gen, false),
                operand(t, shape, gen, gen() % 2)};
  s.operands[0].stride = row_major(out);
  s.operands[0].offset = 0;
  if (rows) {
    s.operands[1].stride = Dims::filled(rank, 0);
    s.operands[1].stride[axis] = pick(gen, 1, 2);
  }
  return s;
}

LibrarySpec random_write(std::mt19937& gen, bool rows, bool singles) {
  static const DType all[] = {float64, float32, float16, bfloat16, int64,
                              int32,   int16,   int8,    uint8,    bool_};
  LibrarySpec s = random_scatter(gen, rows);
  int axis = s.attrs.as<IndexAttrs>().axis;
  s.op = Op::Scatter;
  if (singles) {
    s = LibrarySpec();
    s.op = Op::Scatter;
    s.site = 7;
    axis = static_cast<int>(gen() % 2);
    Dims index = axis ? Dims{3, pick(gen, 128, 700)} : Dims{pick(gen, 128, 700), 3}, out = index;
    out[axis] = pick(gen, 2, 400);
    s.operands = {operand(float32, out, gen, false),
                  operand(gen() % 2 ? int64 : int32, index, gen, gen() % 2),
                  operand(float32, index, gen, gen() % 2)};
    s.operands[0].stride = row_major(out);
    s.operands[0].offset = 0;
  }
  DType t = all[gen() % 10];
  auto mode = static_cast<ScatterMode>(gen() % 4);
  if (t == bool_ && mode == ScatterMode::Prod) mode = ScatterMode::Set;
  s.attrs = ScatterAttrs{axis, mode};
  s.operands[0].dtype = s.operands[2].dtype = t;
  s.operands.insert(s.operands.begin() + 1, operand(t, s.operands[0].shape, gen, gen() % 2));
  return s;
}

namespace {

// One operand to read, and a result of its shape; returns the axis.
int one_operand(LibrarySpec& s, DType t, DType result, int64_t longest, std::mt19937& gen) {
  int rank = static_cast<int>(pick(gen, 1, 4)), axis = static_cast<int>(pick(gen, 0, rank - 1));
  Dims shape;
  for (int d = 0; d < rank; ++d)
    shape.push_back(d == axis ? pick(gen, 1, longest) : pick(gen, 1, longest > 1000 ? 2 : 7));
  s.operands = {operand(result, shape, gen, false), operand(t, shape, gen, gen() % 2)};
  s.operands[0].stride = row_major(shape);
  s.operands[0].offset = 0;
  return axis;
}

}  // namespace

LibrarySpec random_scan(std::mt19937& gen, int64_t longest) {
  static const DType all[] = {float64, float32, float16, bfloat16, int64,
                              int32,   int16,   int8,    uint8};
  LibrarySpec s;
  s.op = Op::Scan;
  auto kind = static_cast<ScanKind>(gen() % 5);
  DType t = all[gen() % (kind == ScanKind::LogSum ? 4 : 9)];
  s.attrs = ScanAttrs{one_operand(s, t, kind >= ScanKind::ArgMax ? int64 : t, longest, gen), kind};
  return s;
}

LibrarySpec random_sort(std::mt19937& gen, int64_t longest) {
  static const DType all[] = {float64, float32, float16, bfloat16, int64,
                              int32,   int16,   int8,    uint8,    bool_};
  LibrarySpec s;
  s.op = Op::Sort;
  const bool descending = gen() % 2;
  const int axis = one_operand(s, all[gen() % 10], int64, longest, gen);
  s.attrs = SortAttrs{axis, descending};
  if (gen() % 3 == 0) {
    s.operands[0].shape[axis] = pick(gen, 1, s.operands[0].shape[axis]);
    s.operands[0].stride = row_major(s.operands[0].shape);
  }
  return s;
}

int64_t index_extent(const LibrarySpec& s) {
  return s.op == Op::ScatterAdd || s.op == Op::Scatter ? s.operands[0].shape[axis_of(s)] : 0;
}

namespace {

void write_reference(const LibrarySpec& spec, CallMemory& m) {
  const auto& o = spec.operands;
  const int axis = spec.attrs.as<ScatterAttrs>().axis;
  const ScatterMode mode = spec.attrs.as<ScatterAttrs>().mode;
  std::vector<double> out(static_cast<size_t>(span(o[0])), 0.0);
  for_each(o[0].shape, [&](const Dims& at) {
    out[static_cast<size_t>(place(o[0], at))] = value(o[1], m.at(1), place(o[1], at));
  });
  for_each(o[3].shape, [&](const Dims& at) {
    Dims to = at;
    int64_t i = read_element(o[2].dtype, m.at(2), place(o[2], at)).i;
    to[axis] = i < 0 ? i + o[0].shape[axis] : i;
    double& x = out[static_cast<size_t>(place(o[0], to))];
    double v = value(o[3], m.at(3), place(o[3], at));
    x = mode == ScatterMode::Set    ? v
        : mode == ScatterMode::Prod ? x * v
        : mode == ScatterMode::Max  ? std::max(x, v)
                                    : std::min(x, v);
    if (!is_float(o[0].dtype)) {  // wraps around at every step, as the device does
      write_element(o[0].dtype, m.at(0), 0, {0, static_cast<int64_t>(x)});
      x = static_cast<double>(read_element(o[0].dtype, m.at(0), 0).i);
    }
  });
  for (size_t i = 0; i < out.size(); ++i)
    write_element(o[0].dtype, m.at(0), static_cast<int64_t>(i),
                  {out[i], static_cast<int64_t>(out[i])});
}

void scan_reference(const LibrarySpec& spec, CallMemory& m) {
  const auto& o = spec.operands;
  const int axis = spec.attrs.as<ScanAttrs>().axis;
  const ScanKind kind = spec.attrs.as<ScanAttrs>().kind;
  Dims lines = o[1].shape;
  lines[axis] = 1;
  for_each(lines, [&](Dims at) {
    double f = kind == ScanKind::Prod ? 1 : kind == ScanKind::LogSum ? -HUGE_VAL : 0, best = 0;
    int64_t i = kind == ScanKind::Prod, found = -1;
    for (int64_t k = 0; k < o[1].shape[axis]; ++k) {
      at[axis] = k;
      Element e = read_element(o[1].dtype, m.at(1), place(o[1], at));
      double x = is_float(o[1].dtype) ? e.f : static_cast<double>(e.i);
      bool wins = kind == ScanKind::ArgMax ? x >= best : x <= best;
      if (kind == ScanKind::Sum) f += x, i += e.i;
      if (kind == ScanKind::Prod)
        f *= x, i = static_cast<int64_t>(static_cast<uint64_t>(i) * static_cast<uint64_t>(e.i));
      if (kind == ScanKind::LogSum)
        f = std::max(f, x) + std::log1p(std::exp(std::min(f, x) - std::max(f, x)));
      if (found < 0 || std::isnan(x) || (!std::isnan(best) && wins)) best = x, found = k;
      write_element(o[0].dtype, m.at(0), place(o[0], at),
                    {f, kind >= ScanKind::ArgMax ? found : i});
    }
  });
}

void sort_reference(const LibrarySpec& spec, CallMemory& m) {
  const auto& o = spec.operands;
  const int axis = spec.attrs.as<SortAttrs>().axis;
  const bool descending = spec.attrs.as<SortAttrs>().descending;
  Dims lines = o[1].shape;
  lines[axis] = 1;
  for_each(lines, [&](Dims at) {
    std::vector<std::pair<double, int64_t>> all;
    for (int64_t k = 0; k < o[1].shape[axis]; ++k) {
      at[axis] = k;
      all.push_back({value(o[1], m.at(1), place(o[1], at)), k});
    }
    std::stable_sort(all.begin(), all.end(), [&](const auto& a, const auto& b) {
      if (std::isnan(a.first) || std::isnan(b.first))
        return descending ? std::isnan(a.first) && !std::isnan(b.first)
                          : !std::isnan(a.first) && std::isnan(b.first);
      return descending ? a.first > b.first : a.first < b.first;
    });
    for (int64_t k = 0; k < o[0].shape[axis]; ++k) {
      at[axis] = k;
      write_element(o[0].dtype, m.at(0), place(o[0], at), {0, all[static_cast<size_t>(k)].second});
    }
  });
}

}  // namespace

void reference(const LibrarySpec& spec, CallMemory& m) {
  switch (spec.op) {
    case Op::Matmul:
      return matmul_reference(spec, m);
    case Op::Scatter:
      return write_reference(spec, m);
    case Op::Scan:
      return scan_reference(spec, m);
    case Op::Sort:
      return sort_reference(spec, m);
    default:
      return scatter_reference(spec, m);
  }
}

std::string difference(const LibrarySpec& spec, CallMemory& got, CallMemory& want) {
  for (size_t k = 0; k < static_cast<size_t>(spec.written); ++k) {
    const OperandSpec& o = spec.operands[k];
    double eps = o.dtype == bfloat16  ? 1.6e-2
                 : o.dtype == float16 ? 2e-3
                 : o.dtype == float32 ? 1e-5
                                      : 1e-12;
    for (int64_t i = 0, n = span(o); i < n; ++i) {
      Element g = read_element(o.dtype, got.at(k), i), w = read_element(o.dtype, want.at(k), i);
      bool same =
          is_float(o.dtype) ? std::fabs(g.f - w.f) <= eps * (4 + std::fabs(w.f)) : g.i == w.i;
      if (!same)
        return "element " + std::to_string(i) + " of " + std::to_string(n) + " of operand " +
               std::to_string(k) + ": got " +
               std::to_string(is_float(o.dtype) ? g.f : static_cast<double>(g.i)) + ", want " +
               std::to_string(is_float(o.dtype) ? w.f : static_cast<double>(w.i));
    }
  }
  return {};
}

RunStatus run_call(Backend& backend, const LibrarySpec& spec, CallMemory& m) {
  const auto exe = backend.prepare(0, spec);
  std::vector<void*> buffers;
  for (size_t i = 0; i < spec.operands.size(); ++i) {
    buffers.push_back(backend.allocate(0, m.bytes[i]));
    backend.copy_from_host(0, buffers[i], m.at(i), m.bytes[i]);
  }
  void* scratch = exe->scratch_bytes ? backend.allocate(0, exe->scratch_bytes) : nullptr;
  RunArgs args;
  RunStatus status;
  args.status = &status;
  backend.launch(0, *exe, buffers.data(), scratch, args);
  for (size_t i = 0; i < static_cast<size_t>(spec.written); ++i)
    backend.copy_to_host(0, m.at(i), buffers[i], m.bytes[i]);
  for (size_t i = 0; i < buffers.size(); ++i) backend.deallocate(0, buffers[i], m.bytes[i]);
  if (scratch) backend.deallocate(0, scratch, exe->scratch_bytes);
  return status;
}

}  // namespace ingot::test
