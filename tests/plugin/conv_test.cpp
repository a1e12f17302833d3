// Convolutions on a GPU, without one: cuDNN's graphs planned for an H200 from its description, and
// our own kernels (for what cuDNN does not take, and Fold) on the emulator against the CPU backend.
#include <dlfcn.h>
#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <fstream>
#include <random>
#include <sstream>
#include <tuple>

#include "backend/cuda/emit/nvrtc.h"
#include "backend/cuda/kernels/kernel_text.h"
#include "emulator/emulator.h"
#include "runtime/backend.h"
#ifdef INGOT_HAVE_CUDNN
#include "backend/cuda/cudnn/conv.h"
#include "backend/cuda/cudnn/dnn.h"
#endif

using namespace ingot;
using namespace ingot::test;

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

struct Shape {
  int64_t n, c, size, out, window, stride, pad, dilation, groups;
};

LibrarySpec conv_spec(Op op, DType t, const Shape& s, bool bias, bool last) {
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

// Memory of a call, filled with small numbers of the type.
struct Memory {
  std::vector<std::vector<double>> blocks;
  explicit Memory(const LibrarySpec& s, unsigned positions = 0) {
    std::mt19937 gen(4);
    for (size_t k = 0; k < s.operands.size(); ++k) {
      const OperandSpec& o = s.operands[k];
      blocks.emplace_back(static_cast<size_t>(o.shape.numel()) + 8, 0.0);
      for (int64_t i = 0; k > 0 && i < o.shape.numel(); ++i) {
        const int v = k == 2 && positions ? static_cast<int>(gen() % positions)
                                          : static_cast<int>(gen() % 9) - 4;
        char* p = reinterpret_cast<char*>(blocks.back().data()) +
                  i * static_cast<int64_t>(size_of(o.dtype));
        auto put = [&](auto x) { std::memcpy(p, &x, sizeof x); };
        switch (o.dtype) {
          case DType::Float64:
            put(static_cast<double>(v));
            break;
          case DType::Float32:
            put(static_cast<float>(v));
            break;
          case DType::BFloat16: {
            const float f = static_cast<float>(v);
            uint32_t u;
            std::memcpy(&u, &f, 4);
            put(static_cast<uint16_t>(u >> 16));
            break;
          }
          case DType::Int32:
            put(static_cast<int32_t>(v));
            break;
          default:
            put(static_cast<uint8_t>(v));
        }
      }
    }
  }
  void* at(size_t k) { return blocks[k].data(); }
};

// The kernel on the emulator gives the CPU backend's bytes: all numbers here are small integers, so
// sums are exact.
void compare(const LibrarySpec& spec, const cuda::HandKernel& k, unsigned positions) {
  CAPTURE(to_string(spec));
  Memory got(spec, positions), want(spec, positions);
  CudaLaunch launch = k.launch;
  for (size_t i = 0; i < spec.operands.size(); ++i)
    launch.pointer(0, static_cast<int>(i)) = reinterpret_cast<int64_t>(got.at(i));
  RunStatus status;
  Emulator::get().run(k.text, launch, {nullptr, nullptr, nullptr, &status, nullptr, nullptr});
  Backend* cpu = backend_for(DeviceType::CPU);
  auto exe = cpu->prepare(0, spec);
  std::vector<char> scratch(exe->scratch_bytes + 64);
  std::vector<void*> buffers;
  for (size_t i = 0; i < spec.operands.size(); ++i) buffers.push_back(want.at(i));
  RunArgs args;
  args.status = &status;
  cpu->launch(0, *exe, buffers.data(), scratch.data(), args);
  CHECK(std::memcmp(got.at(0), want.at(0), got.blocks[0].size() * sizeof(double)) == 0);
}

std::vector<std::pair<LibrarySpec, unsigned>> calls() {
  std::vector<std::pair<LibrarySpec, unsigned>> all;
  for (Op op : {Op::Conv, Op::ConvGradInput, Op::ConvGradWeight})
    for (DType t : {float64, bfloat16, int32})
      for (bool last : {false, true}) {
        all.emplace_back(conv_spec(op, t, {2, 4, 6, 6, 3, 2, 1, 1, 2}, op == Op::Conv, last), 0);
        all.emplace_back(conv_spec(op, t, {1, 2, 7, 3, 2, 1, 0, 2, 1}, false, last), 0);
      }
  LibrarySpec f;  // windows of 3 x 2, stride 2, over planes [2, 3]
  f.op = Op::Fold;
  f.attrs = FoldAttrs{{2, 1}, {1, 2}, {0, 0}, {3, 2}};
  const Dims out{2, 3, 7, 6}, value{2, 3, 3, 4, 3, 2}, one{2, 3, 3, 4};
  f.operands = {{float32, out, row_major(out), 0}, {float32, value, row_major(value), 0}};
  all.emplace_back(f, 0);
  f.operands = {{float32, out, channels_last(out), 0},
                {float32, one, row_major(one), 0},
                {uint8, one, row_major(one), 0}};
  all.emplace_back(f, 6);
  // Max pooling's: the first windows begin outside.
  const FoldAttrs pooling{{2, 2}, {1, 1}, {1, 1}, {3, 3}};
  f.attrs = pooling;
  const Dims even{2, 3, 6, 8}, half{2, 3, 3, 4};
  for (DType t : {float32, bfloat16})
    for (bool last : {false, true}) {
      auto order = [&](const Dims& d) { return last ? channels_last(d) : row_major(d); };
      f.operands = {
          {t, even, order(even), 0}, {t, half, order(half), 0}, {uint8, half, order(half), 0}};
      all.emplace_back(f, 9);
    }
  f.operands = {{float64, even, channels_last(even), 0}, {float64, Dims{2, 3, 3, 4, 3, 3}, {}, 0}};
  f.operands[1].stride = row_major(f.operands[1].shape);
  all.emplace_back(f, 0);
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
    all.emplace_back(f, 9);
    f.operands = {f.operands[0], {t, windows, {}, offset}};
    f.operands[1].stride = {15 * channels, 1, 5 * channels, channels, 30 * channels, 90 * channels};
    all.emplace_back(f, 0);
    f.attrs = FoldAttrs{{1, 2}, {2, 1}, {0, 1}, {3, 3}};  // dilated
    f.operands[0].shape = {2, channels, 7, 9};
    f.operands[0].stride = channels_last(f.operands[0].shape);
    all.emplace_back(f, 0);
  }
  return all;
}

cuda::HandKernel kernel_of(const LibrarySpec& s) {
  return s.op == Op::Fold ? cuda::fold(s) : cuda::simple_conv(s);
}

}  // namespace

TEST_CASE("convolutions and folds by hand-written kernels") {
  for (const auto& [spec, positions] : calls()) Emulator::get().add(kernel_of(spec).text);
  Emulator::get().build();
  for (const auto& [spec, positions] : calls()) compare(spec, kernel_of(spec), positions);
}

#ifdef INGOT_HAVE_CUDNN
TEST_CASE("convolutions find an engine on an H200") {
  if (std::string why = cuda::Dnn::missing(); !why.empty()) {
    MESSAGE("skipped: " << why);
    return;
  }
  REQUIRE(dlopen(STUB_DRIVER, RTLD_NOW | RTLD_GLOBAL) != nullptr);
  if (!Nvrtc::get()) {
    MESSAGE("skipped: " << Nvrtc::missing());
    return;
  }
  std::ifstream in(H200_JSON);
  std::stringstream text;
  text << in.rdbuf();
  REQUIRE(!text.str().empty());
  const Shape shapes[] = {{32, 64, 56, 64, 3, 1, 1, 1, 1},
                          {32, 256, 56, 128, 1, 2, 0, 1, 1},
                          {32, 3, 224, 64, 7, 2, 3, 1, 1},
                          {8, 32, 28, 32, 3, 1, 1, 1, 32},
                          {8, 64, 28, 64, 3, 1, 2, 2, 4}};
  for (const Shape& s : shapes)
    for (DType t : {bfloat16, float16, float32})
      for (Op op : {Op::Conv, Op::ConvGradInput, Op::ConvGradWeight}) {
        const LibrarySpec spec = conv_spec(op, t, s, op == Op::Conv && s.groups == 1, true);
        CAPTURE(to_string(spec));
        const std::string wrong = cuda::plan_conv_for(text.str(), spec);
        const bool planned = wrong.empty() || wrong.find("cuModuleLoad") != std::string::npos ||
                             wrong.find("cuLibraryLoad") != std::string::npos;
        CHECK_MESSAGE(planned, wrong.substr(0, 600));
      }
}

TEST_CASE(
    "ResNet-50's convolutions with batch norm, residual and ReLU find ready-made engines on an "
    "H200") {
  if (std::string why = cuda::Dnn::missing(); !why.empty()) {
    MESSAGE("skipped: " << why);
    return;
  }
  REQUIRE(dlopen(STUB_DRIVER, RTLD_NOW | RTLD_GLOBAL) != nullptr);
  std::ifstream in(H200_JSON);
  std::stringstream text;
  text << in.rdbuf();
  int planned = 0;
  auto check = [&](const Shape& s, DType t, bool residual, bool relu) {
    LibrarySpec spec = conv_spec(Op::Conv, t, s, true, true);
    spec.epilogues.set(Epilogue::Residual, residual);
    if (residual) spec.operands.push_back(spec.operands[0]);
    if (relu) spec.epilogues.set(Epilogue::Relu);
    CAPTURE(to_string(spec));
    REQUIRE(!cuda::conv_refuses(spec));
    const std::string wrong = cuda::plan_conv_for(text.str(), spec);
    CHECK_MESSAGE(wrong.empty(), wrong.substr(0, 600));
    ++planned;
  };
  // Bias and any of residual and ReLU, from the stem to the last block.
  for (DType t : {bfloat16, float16, float32})
    for (int64_t n : {int64_t{1}, int64_t{256}}) {
      check({n, 3, 224, 64, 7, 2, 3, 1, 1}, t, false, true);
      check({n, 16, 115, 64, 4, 1, 0, 1, 1}, t, false, true);  // the same over blocks of pixels
      int64_t in_channels = 64, size = 56;
      for (int stage = 0; stage < 4; ++stage) {
        const int64_t c = int64_t{64} << stage;
        for (int block = 0; block < 2; ++block) {  // the further ones are like the second
          const int64_t stride = block == 0 && stage > 0 ? 2 : 1;
          check({n, in_channels, size, c, 1, 1, 0, 1, 1}, t, false, true);
          check({n, c, size, c, 3, stride, 1, 1, 1}, t, false, true);
          if (block == 0) check({n, in_channels, size, 4 * c, 1, stride, 0, 1, 1}, t, false, false);
          size /= stride;
          check({n, c, size, 4 * c, 1, 1, 0, 1, 1}, t, true, true);
          in_channels = 4 * c;
        }
      }
      check({n, 64, 14, 64, 3, 1, 1, 1, 1}, t, true, false);
      check({n, 64, 14, 64, 3, 1, 1, 1, 4}, t, true, true);
    }
  CHECK(planned == 3 * 2 * (2 + 4 * 7 + 2));
}

TEST_CASE("what cuDNN does not take of convolutions is said") {
  auto why = [](const LibrarySpec& spec) {
    const char* refusal = cuda::conv_refuses(spec);
    return std::string(refusal ? refusal : "");
  };
  const Shape s{2, 8, 8, 8, 3, 1, 1, 1, 1};
  CHECK(why(conv_spec(Op::Conv, bfloat16, s, true, true)) == "");
  CHECK(why(conv_spec(Op::Conv, int32, s, false, true)) == "not one floating type");
  LibrarySpec odd = conv_spec(Op::Conv, bfloat16, s, false, true);
  odd.operands[1].stride[0] += 8;
  CHECK(why(odd) == "an operand is not dense");
  LibrarySpec residual = conv_spec(Op::Conv, bfloat16, s, true, true);
  residual.epilogues.set(Epilogue::Residual);
  residual.operands.push_back(residual.operands[0]);
  CHECK(why(residual) == "");
  residual.operands.back().stride = row_major(residual.operands[0].shape);
  CHECK(why(residual) == "a residual with another layout than the result");
}
#endif
