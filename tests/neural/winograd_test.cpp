// Convolutions by Winograd's tiles against plain loops in float64: odd sizes, every padding, memory
// of any order, weights small enough for one pass and too large for it; the same bits with any
// number of threads.
#include <doctest/doctest.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "backend/cpu/library.h"
#include "backend/cpu/support/threads.h"
#include "codegen/conv_shape.h"
#include "runtime/backend.h"

using namespace ingot;

namespace {

struct Problem {
  int64_t n, c, o, height, width, pad;
  bool channels_last, bias;
};
const Problem kProblems[] = {
    {3, 48, 80, 13, 10, 1, false, true},    // odd rows, ragged panels
    {2, 64, 64, 21, 33, 1, true, false},    // read and written in place
    {4, 64, 48, 20, 17, 0, false, false},   // no padding
    {4, 48, 64, 19, 20, 2, true, true},     // more of it than the window's middle
    {5, 176, 112, 14, 14, 1, false, true},  // a weight too large for one pass
    {24, 160, 160, 8, 9, 1, true, false},   // and several chunks of samples
};

OperandSpec operand(Dims shape, bool channels_last, std::vector<float>& data, double phase) {
  OperandSpec s{DType::Float32, shape, Dims::filled(shape.size(), 0), 3};
  int64_t step = 1;
  std::vector<int> order;
  if (channels_last) order.push_back(1);
  for (int d = shape.size() - 1; d >= 0; --d)
    if (!channels_last || d != 1) order.push_back(d);
  for (int d : order) {
    s.stride[d] = step;
    step *= shape[d];
  }
  data.resize(static_cast<size_t>(step + 3));
  for (size_t i = 0; i < data.size(); ++i)
    data[i] = static_cast<float>(std::sin(phase + 0.7 * static_cast<double>(i * i % 7919)));
  return s;
}

struct Call {
  LibrarySpec spec;
  std::vector<std::vector<float>> data;
  float value(size_t k, int64_t a, int64_t b, int64_t i, int64_t j) const {
    const OperandSpec& p = spec.operands[k];
    return data[k][static_cast<size_t>(p.offset + a * p.stride[0] + b * p.stride[1] +
                                       i * p.stride[2] + j * p.stride[3])];
  }
};

Call call_of(const Problem& p, Op op) {
  Call c;
  const int64_t h = p.height + 2 * p.pad - 2, w = p.width + 2 * p.pad - 2;
  Dims x{p.n, p.c, p.height, p.width}, y{p.n, p.o, h, w}, k{p.o, p.c, 3, 3};
  std::vector<Dims> shapes{y, x, k};
  if (op == Op::ConvGradInput) shapes = {x, y, k};
  if (op == Op::ConvGradWeight) shapes = {k, x, y};
  c.spec.op = op;
  c.spec.attrs = ConvAttrs{{1, 1}, {1, 1}, {p.pad, p.pad}, {p.pad, p.pad}, 1};
  c.spec.epilogues.set(Epilogue::Bias, p.bias && op == Op::Conv);
  for (size_t i = 0; i < 3; ++i) {
    c.data.emplace_back();
    const bool weight = shapes[i] == k;
    c.spec.operands.push_back(
        operand(shapes[i], p.channels_last && !weight, c.data.back(), double(i)));
  }
  if (c.spec.has(Epilogue::Bias)) {
    c.data.emplace_back();
    c.spec.operands.push_back(operand({p.o}, false, c.data.back(), 5));
  }
  return c;
}

void run(Call& c) {
  const char* why = nullptr;
  std::unique_ptr<cpu::CpuExecutable> e = cpu::prepare_winograd(c.spec, why);
  REQUIRE(e);
  std::vector<char> scratch(e->scratch_bytes);
  std::vector<void*> buffers;
  for (auto& d : c.data) buffers.push_back(d.data());
  e->run(buffers.data(), scratch.data(), RunArgs{});
}

/// The exact result and the largest it could be, element by element in the order of the result's
/// own dims.
void check(const Problem& p, Op op, const Call& c) {
  const int64_t h = p.height + 2 * p.pad - 2, w = p.width + 2 * p.pad - 2;
  const Dims out = c.spec.operands[0].shape;
  const size_t ix = op == Op::ConvGradInput ? 0 : 1,
               iy = op == Op::Conv            ? 0
                    : op == Op::ConvGradInput ? 1
                                              : 2,
               iw = op == Op::ConvGradWeight ? 0 : 2;
  std::vector<double> want(static_cast<size_t>(out.numel()), 0.0);
  for (int64_t n = 0; n < p.n; ++n)
    for (int64_t o = 0; o < p.o; ++o)
      for (int64_t i = 0; i < h; ++i)
        for (int64_t j = 0; j < w; ++j) {
          double sum = c.spec.has(Epilogue::Bias) ? c.data[3][static_cast<size_t>(3 + o)] : 0;
          for (int64_t k = 0; k < 9; ++k) {
            const int64_t r = i + k / 3 - p.pad, q = j + k % 3 - p.pad;
            if (r < 0 || r >= p.height || q < 0 || q >= p.width) continue;
            for (int64_t m = 0; m < p.c; ++m) {
              if (op == Op::Conv)
                sum += double(c.value(ix, n, m, r, q)) * double(c.value(iw, o, m, k / 3, k % 3));
              else if (op == Op::ConvGradInput)
                want[static_cast<size_t>(((n * p.c + m) * p.height + r) * p.width + q)] +=
                    double(c.value(iy, n, o, i, j)) * double(c.value(iw, o, m, k / 3, k % 3));
              else
                want[static_cast<size_t>((o * p.c + m) * 9 + k)] +=
                    double(c.value(ix, n, m, r, q)) * double(c.value(iy, n, o, i, j));
            }
          }
          if (op == Op::Conv) want[static_cast<size_t>(((n * p.o + o) * h + i) * w + j)] = sum;
        }
  double off = 0, size = 0;
  size_t at = 0;
  for (int64_t a = 0; a < out[0]; ++a)
    for (int64_t b = 0; b < out[1]; ++b)
      for (int64_t i = 0; i < out[2]; ++i)
        for (int64_t j = 0; j < out[3]; ++j, ++at) {
          const double e = double(c.value(0, a, b, i, j)) - want[at];
          off += e * e;
          size += want[at] * want[at];
        }
  CHECK(std::sqrt(off) <= 1e-6 * std::sqrt(size));
}

}  // namespace

TEST_CASE("Winograd's convolutions agree with plain loops in float64") {
  for (const Problem& p : kProblems)
    for (Op op : {Op::Conv, Op::ConvGradInput, Op::ConvGradWeight}) {
      CAPTURE(p.c);
      CAPTURE(p.o);
      CAPTURE(std::string(info(op).name));
      Call c = call_of(p, op);
      const std::vector<float> edges(c.data[0].begin(), c.data[0].begin() + 3);
      run(c);
      CHECK(std::memcmp(edges.data(), c.data[0].data(), 12) == 0);  // nothing before the result
      check(p, op, c);
    }
}

TEST_CASE("the number of threads changes no bit of Winograd's convolutions") {
  const int threads = get_num_threads();
  for (const Problem& p : kProblems)
    for (Op op : {Op::Conv, Op::ConvGradInput, Op::ConvGradWeight}) {
      Call one = call_of(p, op), three = call_of(p, op);
      set_num_threads(1);
      run(one);
      set_num_threads(3);
      run(three);
      CHECK(one.data[0] == three.data[0]);
    }
  set_num_threads(threads);
}

TEST_CASE("Winograd leaves to others what it is not for") {
  Call c = call_of(kProblems[0], Op::Conv);
  REQUIRE(!cpu::winograd_refuses(c.spec));
  auto refused = [&](auto change) {
    LibrarySpec s = c.spec;
    change(s);
    return cpu::winograd_refuses(s) != nullptr;
  };
  auto refused_with = [&](auto change) {
    ConvAttrs a = c.spec.attrs.as<ConvAttrs>();
    change(a);
    return refused([&](LibrarySpec& s) { s.attrs = a; });
  };
  CHECK(refused_with([](ConvAttrs& a) { a.stride[0] = 2; }));    // stride
  CHECK(refused_with([](ConvAttrs& a) { a.dilation[0] = 2; }));  // dilation
  CHECK(refused_with([](ConvAttrs& a) { a.front[0] = 3; }));     // padding
  CHECK(refused_with([](ConvAttrs& a) { a.front[0] = 0; }));     // another one for each dim
  CHECK(refused_with([](ConvAttrs& a) { a.groups = 16; }));
  for (const cpu::LibraryKernel& kernel : cpu::library_kernels())
    if (kernel.kernel == std::string("Winograd")) CHECK(!kernel.epilogues.has(Epilogue::Relu));
  CHECK(refused([](LibrarySpec& s) { s.operands[1].dtype = DType::BFloat16; }));
  CHECK(cpu::winograd_refuses(
      call_of({1, 16, 16, 4, 4, 1, false, false}, Op::Conv).spec));  // too small
}
