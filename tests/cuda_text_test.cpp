// The generated CUDA text: compiled by NVRTC for sm_80 and sm_90 where there is one, executed by the emulator, and compared
// with the naive interpreter. INGOT_DEBUG=registers prints what ptxas says about each kernel.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <random>
#include <thread>

#include <doctest/doctest.h>

#include "codegen/cuda_schedule.h"
#include "codegen/nvrtc.h"
#include "text_cases.h"
#include "emulator/emulator.h"
#include "spec_interpreter.h"

using namespace ingot;
using namespace ingot::test;

namespace {

std::vector<TextCase> all_cases() {
  std::vector<TextCase> all;
  for (auto& list : {map_cases(), reduce_cases(), row_cases(), random_cases(120, 1)}) all.insert(all.end(), list.begin(), list.end());
  return all;
}

/// Memory of a launch: all parts' buffers one after the other, 64-byte aligned, with margins that must stay as they are.
class Memory {
 public:
  static constexpr size_t kMargin = 64;
  explicit Memory(const std::vector<KernelSpec>& parts) {
    std::mt19937 gen(5);
    for (const KernelSpec& k : parts)
      for (const BufferSpec& b : k.buffers) {
        add(static_cast<size_t>(b.numel) * size_of(b.dtype) + 2 * kMargin);
        for (int64_t i = 0; i < b.numel; ++i) write_element(b.dtype, pointers_.back(), i, sample(gen, b.dtype));
      }
  }
  Memory(const Memory& other) {
    for (size_t b = 0; b < other.sizes_.size(); ++b) {
      add(other.sizes_[b]);
      std::memcpy(blocks_[b].get(), other.blocks_[b].get(), sizes_[b]);
    }
  }
  void* const* pointers() const { return pointers_.data(); }
  void* operator[](size_t b) const { return pointers_[b]; }

 private:
  struct Free {
    void operator()(char* p) const { std::free(p); }
  };
  void add(size_t bytes) {
    blocks_.emplace_back(static_cast<char*>(std::aligned_alloc(64, (bytes + 63) / 64 * 64)));
    std::memset(blocks_.back().get(), 0x7f, bytes);
    sizes_.push_back(bytes);
    pointers_.push_back(blocks_.back().get() + kMargin);
  }
  /// Numbers that keep every op well conditioned: floats in (-1, 1), small integers, now and then a zero.
  static Element sample(std::mt19937& gen, DType t) {
    double u = static_cast<double>(gen() % 20001) / 10000.0 - 1;
    if (is_float(t)) return {u, 0};
    if (t == bool_) return {0, static_cast<int64_t>(gen() % 2)};
    return {0, static_cast<int64_t>(gen() % 14) - (t == uint8 ? 0 : 5)};
  }
  std::vector<std::unique_ptr<char, Free>> blocks_;
  std::vector<size_t> sizes_;
  std::vector<void*> pointers_;
};

struct Inputs {
  double args[3] = {0.25, -1.5, 3};
  uint64_t seeds[2] = {42, 0x123456789abcdefull}, offsets[2] = {0, 77};
  RunStatus status;
  RunArgs run() { return {args, seeds, offsets, &status}; }
};

void run_emulated(const TextCase& c, const CudaText& text, const Memory& memory, Inputs& in) {
  CudaLaunch launch = text.launch(c.parts);
  size_t b = 0;
  for (size_t p = 0; p < c.parts.size(); ++p)
    for (size_t n = 0; n < c.parts[p].buffers.size(); ++n, ++b) {
      // Every second buffer is reached the way external buffers are: through a table.
      auto address = b % 2 == 0 ? reinterpret_cast<uint64_t>(memory[b]) : reinterpret_cast<uint64_t>(&memory.pointers()[b]) | kIndirectPointer;
      launch.pointer(static_cast<int>(p), static_cast<int>(n)) = static_cast<int64_t>(address);
    }
  std::vector<double> scratch(launch.scratch_bytes / 8 + 1, std::nan(""));
  Emulator::get().run(text, launch, {in.args, in.seeds, in.offsets, &in.status, scratch.data(), launch.table.data()});
}

/// The widest type of loads and instructions that a kernel goes through decides how near results must be.
double tolerance(const KernelSpec& k, DType stored) {
  auto eps = [](DType t) { return t == bfloat16 ? 1.6e-2 : t == float16 ? 2e-3 : t == float32 ? 4e-6 : 1e-12; };
  double e = eps(stored);
  for (const Instr& in : k.instrs)
    if (is_float(in.dtype) && in.kind != InstrKind::Load && in.kind != InstrKind::Const) e = std::max(e, eps(in.dtype));
  return e * (k.n_inner() > 0 ? 4 : 1);
}

void compare(const TextCase& c, const Memory& got, const Memory& want) {
  size_t b = 0;
  for (const KernelSpec& k : c.parts)
    for (size_t n = 0; n < k.buffers.size(); ++n, ++b) {
      const BufferSpec& spec = k.buffers[n];
      double tol = tolerance(k, spec.dtype);
      int wrong = 0;
      for (int64_t i = -8; i < spec.numel + 8 && wrong < 3; ++i) {
        Element g = read_element(spec.dtype, got[b], i), w = read_element(spec.dtype, want[b], i);
        bool same = is_float(spec.dtype) ? g.f == w.f || (std::isnan(g.f) && std::isnan(w.f)) ||
                                               std::fabs(g.f - w.f) <= tol * std::max(1.0, std::fabs(w.f))
                                         : g.i == w.i;
        wrong += !same;
        INFO("buffer " << n << " element " << i << " of " << spec.numel << ": got " << g.f << " / " << g.i << ", want " << w.f
                       << " / " << w.i);
        CHECK(same);
      }
    }
}

bool same_bits(const TextCase& c, const Memory& x, const Memory& y) {
  size_t b = 0;
  for (const KernelSpec& k : c.parts)
    for (const BufferSpec& s : k.buffers) {
      if (std::memcmp(x[b], y[b], static_cast<size_t>(s.numel) * size_of(s.dtype)) != 0) return false;
      ++b;
    }
  return true;
}

}  // namespace

TEST_CASE("the emulator's results are the interpreter's") {
  std::vector<TextCase> cases = all_cases();
  std::vector<CudaText> texts;
  for (const TextCase& c : cases) {
    for (const KernelSpec& k : c.parts) verify(k);
    texts.push_back(emit_cuda(c.parts));
    Emulator::get().add(texts.back());
  }
  Emulator::get().build();
  for (size_t n = 0; n < cases.size(); ++n) {
    CAPTURE(cases[n].name);
    CAPTURE(texts[n].schedule);
    CAPTURE(texts[n].key);
    Memory want(cases[n].parts), got(want), again(want);
    Inputs a, b, r;
    size_t first = 0;
    for (const KernelSpec& k : cases[n].parts) {
      interpret(k, want.pointers() + first, a.run());
      first += k.buffers.size();
    }
    run_emulated(cases[n], texts[n], got, b);
    CHECK(a.status.code == b.status.code);
    CHECK((a.status.code != 0) == cases[n].bad_index);
    if (cases[n].bad_index) CHECK(b.status.site == 7);
    if (!cases[n].bad_index) compare(cases[n], got, want);
    Emulator::get().reversed = true;
    run_emulated(cases[n], texts[n], again, r);
    Emulator::get().reversed = false;
    if (!cases[n].bad_index) CHECK(same_bits(cases[n], got, again));
  }
}

TEST_CASE("NVRTC takes the text for sm_80 and sm_90") {
  const Nvrtc* nvrtc = Nvrtc::get();
  if (nvrtc == nullptr) {
    MESSAGE("skipped: " << Nvrtc::missing());
    return;
  }
  std::map<std::string, CudaText> texts;
  for (const TextCase& c : all_cases()) {
    CudaText t = emit_cuda(c.parts);
    texts.emplace(t.key, t);
  }
  const char* debug = std::getenv("INGOT_DEBUG");
  bool verbose = debug != nullptr && std::string(debug).find("registers") != std::string::npos;
  std::vector<std::string> programs;
  size_t n = 0;
  for (auto& [key, t] : texts) {
    if (n % 30 == 0) programs.push_back(cuda_prelude());
    programs.back() += "namespace k" + std::to_string(n++) + " {\n// " + t.schedule + "\n" + t.body + "}\n";
  }
  std::vector<NvrtcResult> results(programs.size() * 2);
  auto work = [&](size_t part) {
    for (size_t i = part; i < results.size(); i += 2) results[i] = nvrtc->compile(programs[i / 2], i % 2 ? "sm_90" : "sm_80", verbose);
  };
  std::thread other(work, 1);
  work(0);
  other.join();
  for (NvrtcResult& r : results) {
    INFO(r.log.substr(0, 3000));
    CHECK(r.ok);
    CHECK(r.code.size() > 1000);
    if (verbose) MESSAGE(r.log);
  }
}

TEST_CASE("a new batch size has the same text") {
  auto key = [](int64_t outer, int64_t inner, bool rows) {
    for (TextCase& c : rows ? row_cases() : map_cases())
      if (c.name == (rows ? "softmax float32 768" : "gelu float32")) {
        KernelSpec k = c.parts[0];
        if (rows) k.extent[0] = outer;
        else k.extent[0] = outer * inner;
        return cuda_structure_key({&k, 1});
      }
    return std::string();
  };
  CHECK(key(8, 768, true) == key(64, 768, true));
  CHECK(key(8, 768, false) == key(64, 768, false));
  CHECK(key(8, 768, true) != key(8, 768, false));
}

TEST_CASE("division by a magic number is division") {
  std::mt19937 gen(3);
  auto divide = [](int64_t x, int64_t m) {
    return static_cast<int64_t>((static_cast<uint64_t>(x) * static_cast<uint32_t>(m)) >> (m >> 32));
  };
  for (int n = 0; n < 20000; ++n) {
    int64_t d = 1 + static_cast<int64_t>(gen() >> (1 + gen() % 30)), x = gen() >> 1;
    int64_t m = cuda::magic_divisor(d);
    REQUIRE(divide(x, m) == x / d);
    REQUIRE(divide(x / d * d, m) == x / d);
    if (x >= d) REQUIRE(divide(x / d * d - 1, m) == x / d - 1);
  }
}
