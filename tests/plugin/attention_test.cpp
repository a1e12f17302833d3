// cuDNN's attention graphs, planned for an H200 from its description, without a GPU. Engines are
// found and their code is generated; only loading it needs the device, so an error about that, and
// no other, is expected here.
#include <dlfcn.h>
#include <doctest/doctest.h>

#include <fstream>
#include <sstream>

#include "backend/cuda/cudnn/attention.h"
#include "backend/cuda/cudnn/dnn.h"
#include "backend/cuda/emit/nvrtc.h"

using namespace ingot;

namespace {

OperandSpec operand(const Dims& shape, const Dims& stride, DType t = bfloat16) {
  OperandSpec o;
  o.dtype = t;
  o.shape = shape;
  o.stride = stride;
  return o;
}

/// q, k, v as the thirds of one [B, T, 3, H, D] projection, o as [B, T, H, D].
cuda::AttentionProblem problem(bool backward, bool causal, int64_t B, int64_t H, int64_t T,
                               int64_t D, DType t = bfloat16) {
  cuda::AttentionProblem p;
  p.backward = backward;
  p.causal = causal;
  p.scale = 0.125;
  Dims shape{B, H, T, D}, packed{T * 3 * H * D, D, 3 * H * D, 1}, plain{T * H * D, D, H * D, 1};
  OperandSpec q = operand(shape, packed, t), o = operand(shape, plain, t),
              lse = operand({B, H, T}, {H * T, T, 1}, float32);
  if (backward)
    p.operands = {q, q, q, q, q, q, o, o, lse};
  else
    p.operands = {o, lse, q, q, q};
  return p;
}

/// Is there an engine for it, as far as that can be known without the device?
bool engine_on_h200(const cuda::AttentionProblem& p) {
  REQUIRE(dlopen(STUB_DRIVER, RTLD_NOW | RTLD_GLOBAL) != nullptr);
  std::ifstream in(H200_JSON);
  std::stringstream text;
  text << in.rdbuf();
  REQUIRE(!text.str().empty());
  const std::string wrong = cuda::plan_attention_for(text.str(), p);
  MESSAGE(wrong);
  return wrong.empty() || wrong.find("cuModuleLoad") != std::string::npos ||
         wrong.find("cuLibraryLoad") != std::string::npos;
}

}  // namespace

TEST_CASE("attention graphs find an engine on an H200") {
  if (std::string why = cuda::Dnn::missing(); !why.empty()) {
    MESSAGE("skipped: " << why);
    return;
  }
  // cuDNN opens the driver and NVRTC by name: both are in the process before it looks.
  REQUIRE(dlopen(STUB_DRIVER, RTLD_NOW | RTLD_GLOBAL) != nullptr);
  if (!Nvrtc::get()) {
    MESSAGE("skipped: " << Nvrtc::missing());
    return;
  }
  for (bool backward : {false, true})
    for (bool causal : {true, false})
      for (const auto& size : {std::pair<int64_t, int64_t>{1024, 64}, {500, 128}}) {
        const int64_t T = size.first, D = size.second;
        CAPTURE(backward);
        CAPTURE(causal);
        CAPTURE(D);
        CHECK(engine_on_h200(problem(backward, causal, 4, 12, T, D)));
      }
  for (bool backward : {false, true})
    for (int64_t heads : {1, 12}) {
      cuda::AttentionProblem p = problem(backward, false, 4, 12, 512, 64);
      p.bias = true;
      p.operands.push_back(
          operand({1, heads, 512, 512}, {heads * 512 * 512, 512 * 512, 512, 1}, bfloat16));
      CAPTURE(backward);
      CAPTURE(heads);
      CHECK(engine_on_h200(p));
    }
}

TEST_CASE("one sequence and one query have strides of 0 in the compiler's operands") {
  LibrarySpec s;
  s.op = Op::Attention;
  for (int64_t queries : {int64_t{448}, int64_t{1}}) {
    CAPTURE(queries);
    const Dims q{1, 12, queries, 64}, k{1, 12, 448, 64};
    s.attrs = AttentionAttrs{queries > 1 ? AttentionMask::Causal : AttentionMask::None, 0.125};
    s.operands = {operand(q, row_major(q), bfloat16),
                  operand(q, {0, 64, queries > 1 ? 2304 : 0, 1}, bfloat16),
                  operand(k, {0, 64, 2304, 1}, bfloat16), operand(k, {0, 64, 2304, 1}, bfloat16)};
    const cuda::AttentionProblem p = cuda::attention_problem(s);
    CHECK(!cuda::attention_refuses(p));
    if (!cuda::Dnn::missing().empty() || !Nvrtc::get()) continue;
    CHECK(engine_on_h200(p));
  }
}

TEST_CASE("the gradient of one sequence has strides of 0 in the compiler's operands") {
  LibrarySpec s;
  s.op = Op::AttentionGrad;
  s.attrs = AttentionAttrs{AttentionMask::Causal, 0.125};
  s.written = 3;
  const Dims q{1, 12, 512, 64};
  for (int64_t third = 0; third < 3; ++third) {  // written side by side
    s.operands.push_back(operand(q, {512 * 2304, 64, 2304, 1}, bfloat16));
    s.operands.back().offset = 768 * third;
  }
  for (int i = 0; i < 3; ++i) s.operands.push_back(operand(q, {0, 64, 2304, 1}, bfloat16));
  for (int i = 0; i < 2; ++i) s.operands.push_back(operand(q, {0, 64, 768, 1}, bfloat16));
  s.operands.push_back(operand({1, 12, 512}, {0, 512, 1}, float32));
  const cuda::AttentionProblem p = cuda::attention_problem(s);
  CHECK(!cuda::attention_refuses(p));
  if (!cuda::Dnn::missing().empty() || !Nvrtc::get()) return;
  CHECK(engine_on_h200(p));
}

TEST_CASE("what cuDNN does not take is said") {
  auto why = [](const cuda::AttentionProblem& p) {
    const char* refusal = cuda::attention_refuses(p);
    return std::string(refusal ? refusal : "");
  };
  CHECK(why(problem(false, true, 2, 2, 64, 64)) == "");
  CHECK(why(problem(false, true, 2, 2, 64, 63)).find("head size") != std::string::npos);
  CHECK(why(problem(false, true, 2, 2, 64, 64, float32)).find("not float16") != std::string::npos);
  auto p = problem(false, true, 2, 2, 64, 64);
  p.operands[3].shape[2] = 32;
  CHECK(why(p).find("different lengths") != std::string::npos);
}
