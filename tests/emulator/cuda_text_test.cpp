// The generated CUDA text: compiled by NVRTC for sm_80 and sm_90 where there is one, executed by
// the emulator, and compared with the naive interpreter. INGOT_DEBUG=registers prints what ptxas
// says about each kernel.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <random>
#include <thread>

#include <doctest/doctest.h>

#include "backend/cuda/emit/nvrtc.h"
#include "backend/cuda/emit/schedule.h"
#include "emulator/emulator.h"
#include "emulator/text_cases.h"
#include "emulator/text_check.h"
#include "support/spec_interpreter.h"

using namespace ingot;
using namespace ingot::test;

namespace {

std::vector<TextCase> all_cases() {
  std::vector<TextCase> all;
  for (auto& list :
       {map_cases(), reduce_cases(), row_cases(), column_cases(), random_cases(120, 1)})
    all.insert(all.end(), list.begin(), list.end());
  return all;
}

void run_emulated(const TextCase& c, const CudaText& text, const Memory& memory, Inputs& in) {
  CudaLaunch launch = text.launch(c.parts);
  size_t b = 0;
  for (size_t p = 0; p < c.parts.size(); ++p)
    for (size_t n = 0; n < c.parts[p].buffers.size(); ++n, ++b) {
      // Every second buffer is reached the way external buffers are: through a table.
      auto address = b % 2 == 0
                         ? reinterpret_cast<uint64_t>(memory[b])
                         : reinterpret_cast<uint64_t>(&memory.pointers()[b]) | kIndirectPointer;
      launch.pointer(static_cast<int>(p), static_cast<int>(n)) = static_cast<int64_t>(address);
    }
  std::vector<double> scratch(launch.scratch_bytes / 8 + 1, std::nan(""));
  Emulator::get().run(
      text, launch,
      {in.args, in.seeds, in.offsets, &in.status, scratch.data(), launch.table.data()});
}

}  // namespace

TEST_CASE("the emulator's results are the interpreter's") {
  std::vector<TextCase> cases = all_cases();
  std::vector<CudaText> texts;
  for (const TextCase& c : cases) {
    for (const KernelSpec& k : c.parts) verify(k);
    texts.push_back(emit_cuda(c.parts, c.target));
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

TEST_CASE("columns are swept, and windows walked by one thread") {
  for (const TextCase& c : column_cases()) {
    std::string schedule = emit_cuda(c.parts, c.target).schedule;
    CAPTURE(c.name);
    CAPTURE(schedule);
    bool sweep = c.name.starts_with("sweep");
    CHECK(sweep == (schedule.find("sweep") != std::string::npos));
    if (!sweep) CHECK(schedule.find("column") == 0);
    if (!sweep) CHECK(schedule.find(", 1 threads per row") != std::string::npos);
    // The same kernel on a large machine has rows enough for none of this.
    CHECK(emit_cuda(c.parts).schedule.find("sweep") == std::string::npos);
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
    CudaText t = emit_cuda(c.parts, c.target);
    texts.emplace(t.key, t);
  }
  const char* debug = std::getenv("INGOT_DEBUG");
  bool verbose = debug != nullptr && std::string(debug).find("registers") != std::string::npos;
  std::vector<std::string> programs;
  size_t n = 0;
  for (auto& [key, t] : texts) {
    if (n % 30 == 0) programs.push_back(cuda_prelude());
    programs.back() +=
        "namespace k" + std::to_string(n++) + " {\n// " + t.schedule + "\n" + t.body + "}\n";
  }
  // The older chip for a third of them: it differs in the last step only. (INGOT_TEST_ALL: for
  // each.)
  const size_t every = std::getenv("INGOT_TEST_ALL") ? 1 : 3;
  std::vector<std::pair<size_t, const char*>> jobs;
  for (size_t i = 0; i < programs.size(); ++i) {
    jobs.emplace_back(i, "sm_90");
    if (i % every == 0) jobs.emplace_back(i, "sm_80");
  }
  std::vector<NvrtcResult> results(jobs.size());
  auto work = [&](size_t part) {
    for (size_t i = part; i < results.size(); i += 2)
      results[i] = nvrtc->compile(programs[jobs[i].first], jobs[i].second, verbose);
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

TEST_CASE("the common kernels spill next to nothing") {
  const Nvrtc* nvrtc = Nvrtc::get();
  if (nvrtc == nullptr) {
    MESSAGE("skipped: " << Nvrtc::missing());
    return;
  }
  const char* debug = std::getenv("INGOT_DEBUG");
  bool verbose = debug != nullptr && std::string(debug).find("registers") != std::string::npos;
  std::vector<TextCase> cases = bench_cases();
  std::vector<CudaText> texts;
  for (const TextCase& c : cases) texts.push_back(emit_cuda(c.parts, c.target));
  std::vector<NvrtcResult> results(cases.size());
  auto work = [&](size_t part) {
    for (size_t i = part; i < results.size(); i += 2)
      results[i] = nvrtc->compile(texts[i].source(), "sm_90", true);
  };
  std::thread other(work, 1);
  work(0);
  other.join();
  for (size_t i = 0; i < results.size(); ++i) {
    INFO(cases[i].name << ": " << texts[i].schedule << "\n" << results[i].log);
    CHECK(results[i].ok);
    std::string log = results[i].log, used;
    for (size_t at = log.find(" bytes stack frame"); at != std::string::npos;
         at = log.find(" bytes stack frame", at + 1))
      CHECK(std::atoi(log.c_str() + log.rfind(' ', at - 1)) <= 16);
    for (size_t at = log.find("Used "); at != std::string::npos; at = log.find("Used ", at + 1))
      used += log.substr(at, log.find(" registers", at) - at) + " ";
    if (verbose)
      std::printf("%-42s %s %s\n", cases[i].name.c_str(), used.c_str(), texts[i].schedule.c_str());
  }
}

TEST_CASE("a new batch size has the same text") {
  auto key = [](int64_t outer, int64_t inner, bool rows) {
    for (TextCase& c : rows ? row_cases() : map_cases())
      if (c.name == (rows ? "softmax float32 768" : "gelu float32")) {
        KernelSpec k = c.parts[0];
        if (rows)
          k.extent[0] = outer;
        else
          k.extent[0] = outer * inner;
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
