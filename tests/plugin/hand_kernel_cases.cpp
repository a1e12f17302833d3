// See hand_kernel_cases.h.
#include "plugin/hand_kernel_cases.h"

#include <tuple>

namespace ingot::test {
namespace {

Dims channels_last(const Dims& shape) {
  Dims s = Dims::filled(shape.size(), 1);
  int64_t step = shape[1];
  for (int d = shape.size() - 1; d >= 2; --d) {
    s[d] = step;
    step *= shape[d];
  }
  s[0] = step;
  return s;
}

}  // namespace

LibrarySpec conv_spec(Op op, DType t, const ConvSize& s, bool bias, bool last) {
  const int64_t y = (s.size + 2 * s.pad - s.dilation * (s.window - 1) - 1) / s.stride + 1;
  const Dims xd{s.n, s.c, s.size, s.size}, wd{s.out, s.c / s.groups, s.window, s.window},
      yd{s.n, s.out, y, y};
  auto operand = [&](const Dims& d) {
    return OperandSpec{t, d, last ? channels_last(d) : row_major(d), 0};
  };
  LibrarySpec l;
  l.op = op;
  if (op == Op::Conv) l.operands = {operand(yd), operand(xd), operand(wd)};
  if (op == Op::ConvGradInput) l.operands = {operand(xd), operand(yd), operand(wd)};
  if (op == Op::ConvGradWeight) l.operands = {operand(wd), operand(xd), operand(yd)};
  const Dims pad{s.pad, s.pad};
  l.attrs = ConvAttrs{{s.stride, s.stride}, {s.dilation, s.dilation}, pad, pad, s.groups};
  l.epilogues.set(Epilogue::Bias, bias);
  if (bias) l.operands.push_back({t, {s.out}, {1}, 0});
  return l;
}

std::vector<KernelCase> library_kernels() {
  std::vector<KernelCase> all;
  std::mt19937 gen(1);
  auto add = [&](const LibrarySpec& s) {
    all.push_back({s, s.op == Op::Matmul ? cuda::simple_matmul(s)
                      : s.op == Op::Scan ? cuda::scan(s, 2)
                      : s.op == Op::Sort ? cuda::sort(s)
                                         : cuda::scatter(s, 2)});
  };
  for (int i = 0; i < 60; ++i) add(random_matmul(gen, false));
  {  // strides that an int does not hold, of a dim of size 1
    LibrarySpec s;
    s.op = Op::Matmul;
    s.operands = {{DType::Float32, {9, 20}, {20, 1}, 0},
                  {DType::Float32, {9, 1}, {1, int64_t{1} << 40}, 0},
                  {DType::Float32, {1, 20}, {int64_t{1} << 40, 1}, 0}};
    all.push_back({s, cuda::small_matmul(s)});
  }
  for (int i = 0; i < 20; ++i) {
    LibrarySpec s = random_relu_gradient(gen);
    all.push_back({s, i % 4 ? cuda::small_matmul(s) : cuda::simple_matmul(s)});
  }
  for (int i = 0; i < 30; ++i)
    if (LibrarySpec s = random_bias_gradient(gen); cuda::is_small_matmul(s))
      all.push_back({s, cuda::small_matmul(s)});
  for (int i = 0; i < 400; ++i)
    if (LibrarySpec s = random_matmul(gen, true); cuda::is_small_matmul(s))
      all.push_back({s, cuda::small_matmul(s)});
  for (int i = 0, taken = 0; i < 120 && taken < 60; ++i)
    if (LibrarySpec s = random_row_matmul(gen); cuda::is_row_matmul(s))
      all.push_back({s, cuda::row_matmul(s)}), ++taken;
  for (int i = 0; i < 40; ++i) add(random_scatter(gen, false));
  for (int i = 0; i < 40; ++i) add(random_scatter(gen, true));
  for (int i = 0; i < 60; ++i) add(random_write(gen, i % 3 == 0, i % 3 == 1));
  for (int i = 0; i < 60; ++i) add(random_scan(gen, i % 2 ? 40 : 600));
  for (int i = 0; i < 12; ++i) add(random_scan(gen, 60000));
  for (int i = 0; i < 50; ++i) add(random_sort(gen, i % 2 ? 30 : 2048));
  for (int i = 0; i < 16; ++i) add(random_sort(gen, 12000));
  return all;
}

std::vector<KernelCase> row_attention_kernels() {
  std::mt19937 gen(11);
  std::vector<KernelCase> all;
  for (int i = 0; i < 40; ++i) {
    LibrarySpec s = random_row_attention(gen);
    all.push_back({s, cuda::row_attention(s, i % 3 != 0)});
  }
  return all;
}

std::vector<KernelCase> short_attention_kernels() {
  std::mt19937 gen(12);
  std::vector<KernelCase> all;
  for (int i = 0; i < 10; ++i) {
    LibrarySpec s = random_short_attention(gen, i < 8 ? 96 : 256);
    all.push_back({s, cuda::short_attention_grad(s)});
  }
  return all;
}

std::vector<KernelCase> product_pass_kernels() {
  std::mt19937 gen(9);
  std::vector<KernelCase> all;
  for (int i = 0; i < 12; ++i) {
    LibrarySpec s = i % 3 ? random_gelu_matmul(gen) : random_bias_gradient(gen);
    all.push_back({s, i % 3 ? cuda::gelu_pass(s) : cuda::row_sums(s)});
  }
  return all;
}

std::vector<cuda::CudaKernel> lstm_cell_kernels() {
  std::vector<cuda::CudaKernel> all;
  for (bool backward : {false, true})
    for (DType t : {DType::Float32, DType::BFloat16, DType::Float16})
      for (int lanes : {1, 2, 4}) all.push_back(cuda::lstm_cell(backward, t, 5, 36, 150, lanes));
  return all;
}

std::vector<cuda::CudaKernel> other_cell_kernels() {
  std::vector<cuda::CudaKernel> all{cuda::gru_first_state(180)};
  for (auto* make : {cuda::gru_cell, cuda::tanh_cell, cuda::relu_cell})
    for (bool backward : {false, true})
      for (DType t : {DType::Float32, DType::BFloat16, DType::Float16})
        for (int lanes : {1, 4}) all.push_back(make(backward, t, 5, 36, 150, lanes));
  return all;
}

std::vector<KernelCase> conv_kernels() {
  std::vector<KernelCase> all;
  auto add = [&](const LibrarySpec& s, unsigned positions) {
    all.push_back({s, s.op == Op::Fold ? cuda::fold(s) : cuda::simple_conv(s), positions});
  };
  for (Op op : {Op::Conv, Op::ConvGradInput, Op::ConvGradWeight})
    for (DType t : {float64, bfloat16, int32})
      for (bool last : {false, true}) {
        add(conv_spec(op, t, {2, 4, 6, 6, 3, 2, 1, 1, 2}, op == Op::Conv, last), 0);
        add(conv_spec(op, t, {1, 2, 7, 3, 2, 1, 0, 2, 1}, false, last), 0);
      }
  LibrarySpec f;  // windows of 3 x 2, stride 2, over planes [2, 3]
  f.op = Op::Fold;
  f.attrs = FoldAttrs{{2, 1}, {1, 2}, {0, 0}, {3, 2}};
  const Dims out{2, 3, 7, 6}, value{2, 3, 3, 4, 3, 2}, one{2, 3, 3, 4};
  f.operands = {{float32, out, row_major(out), 0}, {float32, value, row_major(value), 0}};
  add(f, 0);
  f.operands = {{float32, out, channels_last(out), 0},
                {float32, one, row_major(one), 0},
                {uint8, one, row_major(one), 0}};
  add(f, 6);
  // Max pooling's: the first windows begin outside.
  const FoldAttrs pooling{{2, 2}, {1, 1}, {1, 1}, {3, 3}};
  f.attrs = pooling;
  const Dims even{2, 3, 6, 8}, half{2, 3, 3, 4};
  for (DType t : {float32, bfloat16})
    for (bool last : {false, true}) {
      auto order = [&](const Dims& d) { return last ? channels_last(d) : row_major(d); };
      f.operands = {
          {t, even, order(even), 0}, {t, half, order(half), 0}, {uint8, half, order(half), 0}};
      add(f, 9);
    }
  f.operands = {{float64, even, channels_last(even), 0}, {float64, Dims{2, 3, 3, 4, 3, 3}, {}, 0}};
  f.operands[1].stride = row_major(f.operands[1].shape);
  add(f, 0);
  // Channels last, with as many as a thread takes at once, half as many, and an offset that is in
  // the way.
  for (auto [t, channels, offset] : {std::tuple<DType, int64_t, int64_t>{bfloat16, 16, 0},
                                     {bfloat16, 12, 0},
                                     {bfloat16, 16, 1},
                                     {float32, 8, 4},
                                     {float64, 6, 0},
                                     {int32, 4, 0}}) {
    f.attrs = pooling;
    const Dims in{2, channels, 6, 9}, to{2, channels, 3, 5}, windows{2, channels, 3, 5, 3, 3};
    f.operands = {{t, in, channels_last(in), offset},
                  {t, to, channels_last(to), 0},
                  {uint8, to, channels_last(to), 0}};
    add(f, 9);
    f.operands = {f.operands[0], {t, windows, {}, offset}};
    f.operands[1].stride = {15 * channels, 1, 5 * channels, channels, 30 * channels, 90 * channels};
    add(f, 0);
    f.attrs = FoldAttrs{{1, 2}, {2, 1}, {0, 1}, {3, 3}};  // dilated
    f.operands[0].shape = {2, channels, 7, 9};
    f.operands[0].stride = channels_last(f.operands[0].shape);
    add(f, 0);
  }
  return all;
}

}  // namespace ingot::test
