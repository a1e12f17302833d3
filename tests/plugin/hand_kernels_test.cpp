// The kernels written by hand: compiled by NVRTC for sm_80 and sm_90 where there is one, run by the
// emulator, compared with naive loops. The product's own strides reach the library's form by
// describe_matmul(), tested on the fake machine.
#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <map>
#include <random>

#include "backend/cuda/emit/nvrtc.h"
#include "backend/cuda/kernels/kernels.h"
#include "backend/cuda/kernels/run_params.h"
#include "emulator/emulator.h"
#include "plugin/hand_kernel_cases.h"
#include "runtime/backend.h"

using namespace ingot;
using namespace ingot::test;

namespace {

RunStatus run(const cuda::CudaKernel& k, CallMemory& m) {
  CudaLaunch launch = k.launch;
  for (size_t i = 0; i < m.blocks.size(); ++i)
    launch.pointer(0, static_cast<int>(i)) = reinterpret_cast<int64_t>(m.at(i));
  std::vector<uint64_t> scratch(launch.scratch_bytes / 8 + 1, 0x7ff7ff7f7ff7ff7full);
  RunStatus status;
  Emulator::get().run(k.text, launch,
                      {nullptr, nullptr, nullptr, &status, scratch.data(), nullptr});
  return status;
}

}  // namespace

TEST_CASE("the cells of an LSTM compute what its formulas say") {
  std::vector<cuda::CudaKernel> all = lstm_cell_kernels();
  for (const cuda::CudaKernel& k : all) Emulator::get().add(k.text);
  Emulator::get().build();
  const int64_t N = 5, H = 36, pitch = 150;
  std::mt19937 gen(3);
  std::normal_distribution<float> normal;
  for (size_t n :
       {size_t{0},
        size_t{9}}) {  // float32: the 16-bit types go through whole LSTMs (lstm_test.cpp)
    for (size_t lanes = 0; lanes < 3; ++lanes) {
      const bool backward = n >= 9;
      CAPTURE(all[n + lanes].text.key);
      // Wide enough for whichever buffer: [N, 4 H] with z's pitch.
      std::vector<std::vector<float>> b(
          8, std::vector<float>(static_cast<size_t>(N * 4 * H + N * pitch)));
      for (auto& x : b)
        for (float& f : x) f = normal(gen);
      auto want = b;
      auto sigmoid = [](double x) { return 1 / (1 + std::exp(-x)); };
      for (int64_t i = 0; i < N; ++i)
        for (int64_t j = 0; j < H; ++j) {
          auto at = [&](int64_t gate) { return static_cast<size_t>((i * 4 + gate) * H + j); };
          const auto e = static_cast<size_t>(i * H + j), loose = static_cast<size_t>(i * pitch + j);
          auto put = [&](size_t buffer, size_t place, double v) {
            want[buffer][place] = static_cast<float>(v);
          };
          if (!backward) {
            auto sum = [&](int64_t g) {
              return double(b[0][loose + static_cast<size_t>(g * H)]) + b[1][at(g)];
            };
            const double in = sigmoid(sum(0)), forget = sigmoid(sum(1)), fresh = std::tanh(sum(2)),
                         out = sigmoid(sum(3)), c = forget * b[2][e] + in * fresh;
            put(3, e, out * std::tanh(c));
            put(5, e, c);
            put(4, at(0), in), put(4, at(1), forget), put(4, at(2), fresh), put(4, at(3), out);
            continue;
          }
          const double in = b[2][at(0)], forget = b[2][at(1)], fresh = b[2][at(2)],
                       out = b[2][at(3)], t = std::tanh(double(b[3][e])),
                       d = double(b[0][loose]) + b[1][e], dc = b[5][e] + d * out * (1 - t * t);
          put(6, at(0), dc * fresh * in * (1 - in));
          put(6, at(1), dc * b[4][e] * forget * (1 - forget));
          put(6, at(2), dc * in * (1 - fresh * fresh));
          put(6, at(3), d * t * out * (1 - out));
          put(7, e, dc * forget);
        }
      CudaLaunch launch = all[n + lanes].launch;
      for (size_t i = 0; i < b.size(); ++i)
        launch.pointer(0, static_cast<int>(i)) = reinterpret_cast<int64_t>(b[i].data());
      RunStatus status;
      Emulator::get().run(all[n + lanes].text, launch,
                          {nullptr, nullptr, nullptr, &status, nullptr, nullptr});
      for (size_t i = 0; i < b.size(); ++i)
        for (size_t j = 0; j < b[i].size(); ++j)
          if (std::abs(b[i][j] - want[i][j]) > 1e-5 * (1 + std::abs(want[i][j])))
            FAIL_CHECK("buffer " << i << " at " << j << ": " << b[i][j] << ", not " << want[i][j]);
    }
  }
}

TEST_CASE("products, scatters, scans and sorts by hand-written kernels") {
  std::vector<KernelCase> all = library_kernels();
  for (const KernelCase& c : all) Emulator::get().add(c.kernel.text);
  Emulator::get().build();
  for (size_t n = 0; n < all.size(); ++n) {
    const LibrarySpec& s = all[n].spec;
    CAPTURE(n);
    CAPTURE(to_string(s));
    CAPTURE(all[n].kernel.text.key);
    int64_t extent = index_extent(s);
    CallMemory got(s, 3, extent), want = got;
    reference(s, want);
    CHECK(run(all[n].kernel, got).code == 0);
    CHECK(difference(s, got, want) == "");
  }
}

TEST_CASE("GELU and its gradient as a pass after a product") {
  std::mt19937 gen(9);
  for (int n = 0; n < 20; ++n) {
    const LibrarySpec s = random_gelu_matmul(gen);
    const bool gradient = s.has(Epilogue::GeluTanhGrad);
    cuda::CudaKernel k = cuda::gelu_pass(s);
    CAPTURE(to_string(s));
    // What the product alone leaves, then the pass over it, must be what the whole call gives.
    LibrarySpec plain = s;
    plain.epilogues =
        s.epilogues.without({Epilogue::GeluTanh, Epilogue::KeepSum, Epilogue::GeluTanhGrad});
    CallMemory got(s, 3), want = got;
    reference(plain, got);
    reference(s, want);
    CudaLaunch launch = k.launch;
    launch.pointer(0, 0) = reinterpret_cast<int64_t>(got.at(gradient ? 0 : 1));
    launch.pointer(0, 1) = reinterpret_cast<int64_t>(got.at(gradient ? s.operands.size() - 1 : 0));
    Emulator::get().run(k.text, launch, {nullptr, nullptr, nullptr, nullptr, nullptr, nullptr});
    CHECK(difference(s, got, want) == "");
  }
}

TEST_CASE("attention of one query per head, with masks that hide the rest of a cache") {
  std::vector<KernelCase> all = row_attention_kernels();
  for (const KernelCase& c : all) {
    REQUIRE(cuda::is_row_attention(c.spec));
    Emulator::get().add(c.kernel.text);
  }
  Emulator::get().build();
  for (size_t n = 0; n < all.size(); ++n) {
    const LibrarySpec& s = all[n].spec;
    CAPTURE(n);
    CAPTURE(to_string(s));
    CallMemory got(s, 3);
    if (s.operands.size() >
        static_cast<size_t>(s.written) + 3) {  // keys after the first third are not written yet
      const size_t at = static_cast<size_t>(s.written) + 3;
      const OperandSpec& bias = s.operands[at];
      const int64_t S = bias.shape[3], rows = bias.shape.numel() / S;
      const uint32_t never = bias.dtype == bfloat16 ? 0xff80 : 0xfc00;
      for (int64_t i = 0; i < rows * S; ++i) {
        if (i % S <= S / 3 && !(s.attrs.as<AttentionAttrs>().newest() && i % 2)) continue;
        if (bias.dtype == float32)
          static_cast<float*>(got.at(at))[i] = -HUGE_VALF;
        else
          static_cast<uint16_t*>(got.at(at))[i] = static_cast<uint16_t>(never);
      }
    }
    CallMemory want = got;
    attention_reference(s, want);
    CHECK(run(all[n].kernel, got).code == 0);
    CHECK(difference(s, got, want) == "");
  }
  LibrarySpec s = all[0].spec;
  s.attrs = AttentionAttrs{AttentionMask::Causal};
  CHECK(!cuda::is_row_attention(s));  // causal
  s = all[0].spec;
  s.operands[static_cast<size_t>(s.written)].shape[2] = 2;
  CHECK(!cuda::is_row_attention(s));  // two queries
}

TEST_CASE("the gradient of attention over short sequences") {
  std::vector<KernelCase> all = short_attention_kernels();
  for (const KernelCase& c : all) {
    REQUIRE(cuda::is_short_attention_grad(c.spec));
    Emulator::get().add(c.kernel.text);
  }
  Emulator::get().build();
  for (size_t n = 0; n < all.size(); ++n) {
    const LibrarySpec& s = all[n].spec;
    CAPTURE(n);
    CAPTURE(to_string(s));
    CallMemory got(s, 3);
    short_attention(s, got);
    CallMemory want = got;
    short_attention_reference(s, want);
    CHECK(run(all[n].kernel, got).code == 0);
    for (size_t i = 0; i < 3; ++i) {
      CAPTURE(i);
      CHECK(distance(s, i, got, want) < (s.operands[0].dtype == bfloat16 ? 6e-3 : 1e-3));
    }
  }
  LibrarySpec s = all[0].spec;
  s.operands[3].offset += 4;
  CHECK(!cuda::is_short_attention_grad(s));  // not aligned
  s = all[0].spec;
  for (OperandSpec& o : s.operands) o.shape[2] = 48;
  CHECK(!cuda::is_short_attention_grad(s));  // not a multiple of 32
  s = all[0].spec;
  s.operands.push_back(s.operands[0]);
  CHECK(!cuda::is_short_attention_grad(s));  // a bias
}

TEST_CASE("which products of few rows are taken, and how they are cut") {
  auto linear = [](DType t, int64_t M, int64_t N, int64_t K) {
    LibrarySpec s;
    s.operands = {{t, Dims{M, N}, Dims{N, 1}, 0},
                  {t, Dims{M, K}, Dims{K, 1}, 0},
                  {t, Dims{K, N}, Dims{1, K}, 0}};
    return s;
  };
  for (auto [N, K] : {std::pair<int64_t, int64_t>{768, 768},
                      {2304, 768},
                      {768, 3072},
                      {50304, 768},
                      {1600, 6400}})
    CHECK(cuda::is_row_matmul(linear(bfloat16, 1, N, K)));
  CHECK(cuda::is_row_matmul(linear(float32, 4, 10, 32)));
  CHECK(cuda::is_row_matmul(linear(bfloat16, 8, 768, 768)));
  CHECK(!cuda::is_row_matmul(linear(bfloat16, 9, 768, 768)));
  CHECK(!cuda::is_row_matmul(linear(float32, 5, 768, 768)));
  CHECK(!cuda::is_row_matmul(linear(bfloat16, 1, 768, 772)));  // pieces of 8
  CHECK(!cuda::is_row_matmul(linear(float64, 1, 768, 768)));
  CHECK(!cuda::is_row_matmul(linear(bfloat16, 1, 768, 1 << 17)));  // too deep
  LibrarySpec s = linear(bfloat16, 1, 768, 768);
  s.operands[2].stride = Dims{768, 1};
  CHECK(!cuda::is_row_matmul(s));
  s = linear(bfloat16, 1, 768, 768);
  s.operands[1].offset = 4;
  CHECK(!cuda::is_row_matmul(s));
  // 768 columns of 3072 in float32: eight warps to each, all weights under way at once.
  CHECK(cuda::row_matmul(linear(float32, 1, 768, 3072)).launch.stages[0].grid == 768);
  // In 16 bits, sixteen columns to a block.
  cuda::CudaKernel k = cuda::row_matmul(linear(bfloat16, 1, 768, 3072));
  CHECK(k.launch.stages[0].grid == 48);
  CHECK(k.text.stages[0].threads == 512);
  k = cuda::row_matmul(linear(bfloat16, 1, 50304, 768));
  CHECK(k.launch.stages[0].grid == 50304 / 16);
  CHECK(k.text.stages[0].threads == 256);
}

TEST_CASE("an index out of range is reported and nothing is added for it") {
  std::mt19937 gen(5);
  for (int how = 0; how < 5; ++how) {
    LibrarySpec s = how < 2 ? random_scatter(gen, how == 1) : random_write(gen, how == 3, how == 4);
    cuda::CudaKernel k = cuda::scatter(s, 2);
    int64_t extent = s.operands[0].shape[axis_of(s)];
    CallMemory m(s, 3, extent);
    const size_t ix = s.operands.size() - 2;
    const OperandSpec& index = s.operands[ix];
    if (index.dtype == DType::Int64)
      static_cast<int64_t*>(m.at(ix))[index.offset] = extent;
    else
      static_cast<int32_t*>(m.at(ix))[index.offset] = static_cast<int32_t>(extent);
    RunStatus status = run(k, m);
    CHECK(status.code == RunStatus::IndexError);
    CHECK(status.site == 7);
    CHECK(status.value == extent);
    CHECK(status.extent == extent);
  }
}

TEST_CASE("the kernels around a run pass parameters and status") {
  CudaText text = cuda::run_kernels();
  Emulator::get().add(text);
  Emulator::get().build();
  int64_t host[2][4] = {{1, 2, 3, 4}, {5, 6, 7, 8}}, block[12] = {}, runs = 0;
  int64_t records[4][4] = {};
  auto address = [](void* p) { return reinterpret_cast<cuda::Address>(p); };
  cuda::RunParams p{};
  p.host_slots = address(host), p.slot_words = 4, p.slot_mask = 1, p.block = address(block + 8);
  p.slots_used = address(block), p.runs = address(&runs);
  p.records = address(records), p.record_mask = 3;
  std::vector<int64_t> words(sizeof p / sizeof(int64_t));
  std::memcpy(words.data(), &p, sizeof p);
  RunStatus status{2, 3, 4, 5};
  for (int n = 0; n < 5; ++n) {
    CudaLaunch launch;
    launch.stages = {{1, 0}, {1, 0}};
    launch.words = words;
    CudaText begin = text, end = text;
    status = {2, 3, 4, 5};
    begin.stages.resize(1);
    end.stages.erase(end.stages.begin());
    CudaHeader header;
    header.status = &status;
    Emulator::get().run(begin, launch, header);
    CHECK(block[0] == n + 1);
    for (int i = 0; i < 4; ++i) CHECK(block[8 + i] == host[n % 2][i]);
    CHECK(status.code == 0);
    status = {1, n, 40, 50};
    block[0] = n;
    header.scratch = block;  // a run that continues keeps the status
    Emulator::get().run(begin, launch, header);
    CHECK(status.code == 1);
    launch.stages.resize(1);
    Emulator::get().run(end, launch, header);
    CHECK(runs == n + 1);
    CHECK(records[n % 4][0] == n + 1);
    CHECK(records[n % 4][1] == (int64_t{n} << 32 | 1));
    CHECK(records[n % 4][2] == 40);
    CHECK(records[n % 4][3] == 50);
  }
  // A run that went well leaves its number and nothing else.
  CudaLaunch launch;
  launch.stages = {{1, 0}};
  launch.words = words;
  CudaText end = text;
  end.stages.erase(end.stages.begin());
  CudaHeader header;
  status = {0, -1, 7, 7};
  header.status = &status;
  records[5 % 4][1] = 0, records[5 % 4][2] = 9;
  Emulator::get().run(end, launch, header);
  CHECK(records[5 % 4][0] == 6);
  CHECK(records[5 % 4][1] == 0);
  CHECK(records[5 % 4][2] == 9);
}

TEST_CASE("NVRTC takes the hand-written kernels for sm_80 and sm_90") {
  const Nvrtc* nvrtc = Nvrtc::get();
  if (!nvrtc) {
    MESSAGE("skipped: " << Nvrtc::missing());
    return;
  }
  std::map<std::string, CudaText> texts, for_clusters;
  std::mt19937 gen_short(12);
  CudaText run = cuda::run_kernels();
  texts.emplace(run.key, run);
  // The digit passes of a sort are long texts and the same for every type, and small products come
  // in hundreds of forms: some of them will do.
  std::map<std::string, int> seen;
  for (std::mt19937 gen(11); texts.size() < 8;) {
    LibrarySpec s = random_row_attention(gen);
    CudaText t = cuda::row_attention(s, false).text, shared = cuda::row_attention(s, true).text;
    texts.emplace(t.key, t);
    if (shared.key != t.key) for_clusters.emplace(shared.key, shared);
  }
  for (int i = 0; i < 4; ++i) {
    CudaText t = cuda::short_attention_grad(random_short_attention(gen_short, 256)).text;
    texts.emplace(t.key, t);
  }
  for (const KernelCase& c : library_kernels()) {
    const CudaText& t = c.kernel.text;
    const bool sorts = t.schedule == "sort_long" || t.schedule == "scatter_sorted";
    const int most = sorts ? 5 : t.schedule == "small_matmul" ? 60 : 1000;
    if (!texts.contains(t.key) && ++seen[t.schedule] <= most) texts.emplace(t.key, t);
  }
  std::mt19937 gen(9);
  for (int i = 0; i < 12; ++i) {
    CudaText t = i % 3 ? cuda::gelu_pass(random_gelu_matmul(gen)).text
                       : cuda::row_sums(random_bias_gradient(gen)).text;
    texts.emplace(t.key, t);
  }
  for (const cuda::CudaKernel& k : lstm_cell_kernels()) texts.emplace(k.text.key, k.text);
  for (const cuda::CudaKernel& k : other_cell_kernels()) texts.emplace(k.text.key, k.text);
  std::string program = cuda_prelude();
  int n = 0;
  for (auto& [key, t] : texts)
    program += "namespace k" + std::to_string(n++) + " {\n" + t.body + "}\n";
  CHECK(!for_clusters.empty());
  for (const char* arch : {"sm_80", "sm_90"}) {
    if (arch == std::string("sm_90"))
      for (auto& [key, t] : for_clusters)
        program += "namespace k" + std::to_string(n++) + " {\n" + t.body + "}\n";
    NvrtcResult r = nvrtc->compile(program, arch);
    INFO(r.log.substr(0, 3000));
    CHECK(r.ok);
  }
}
