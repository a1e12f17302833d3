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
#include "emulator/emulator.h"
#include "plugin/hand_kernel_cases.h"
#include "runtime/backend.h"
#ifdef INGOT_HAVE_CUDNN
#include "backend/cuda/cudnn/conv.h"
#include "backend/cuda/cudnn/dnn.h"
#endif

using namespace ingot;
using namespace ingot::test;

namespace {

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
void compare(const KernelCase& c) {
  const LibrarySpec& spec = c.spec;
  CAPTURE(to_string(spec));
  Memory got(spec, c.positions), want(spec, c.positions);
  CudaLaunch launch = c.kernel.launch;
  for (size_t i = 0; i < spec.operands.size(); ++i)
    launch.pointer(0, static_cast<int>(i)) = reinterpret_cast<int64_t>(got.at(i));
  RunStatus status;
  Emulator::get().run(c.kernel.text, launch,
                      {nullptr, nullptr, nullptr, &status, nullptr, nullptr});
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

}  // namespace

TEST_CASE("convolutions and folds by hand-written kernels") {
  const std::vector<KernelCase> all = conv_kernels();
  for (const KernelCase& c : all) Emulator::get().add(c.kernel.text);
  Emulator::get().build();
  for (const KernelCase& c : all) compare(c);
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
  const ConvSize shapes[] = {{32, 64, 56, 64, 3, 1, 1, 1, 1},
                             {32, 256, 56, 128, 1, 2, 0, 1, 1},
                             {32, 3, 224, 64, 7, 2, 3, 1, 1},
                             {8, 32, 28, 32, 3, 1, 1, 1, 32},
                             {8, 64, 28, 64, 3, 1, 2, 2, 4}};
  for (const ConvSize& s : shapes)
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
  auto check = [&](const ConvSize& s, DType t, bool residual, bool relu) {
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
  const ConvSize s{2, 8, 8, 8, 3, 1, 1, 1, 1};
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
