// Lists the machine code of the hand-written CUDA kernels, so that two commits can be compared
// without a GPU: cubin_list [--only WORD] [ARCH...] > list.tsv
// (default: all kernels, sm_80 sm_90).
//
// One line for each kernel of each case: name, architecture, bytes of code, registers, hash of the
// code. The code is the cubin's .text sections in any order; names of symbols, line tables and the
// like do not count. Equal texts are compiled once.
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "backend/cuda/emit/nvrtc.h"
#include "emulator/text_cases.h"
#include "plugin/hand_kernel_cases.h"

using namespace ingot;
using namespace ingot::test;

namespace {

struct NamedText {
  std::string name;
  CudaText text;
};

/// Sorts are long texts and nearly the same for every type; small products come in hundreds of
/// forms.
int most_of(const std::string& schedule) {
  if (schedule == "sort_long") return 4;
  if (schedule == "scatter_sorted") return 8;
  return 60;
}

std::vector<NamedText> all_texts() {
  std::vector<NamedText> all;
  std::map<std::string, int> seen;
  auto add = [&](const std::string& group, const CudaText& text) {
    const int n = seen[group]++;
    if (n < most_of(text.schedule)) all.push_back({group + " " + std::to_string(n), text});
  };
  auto add_cases = [&](const char* group, const std::vector<KernelCase>& cases) {
    for (const KernelCase& c : cases)
      add(group + std::string(" ") + c.kernel.text.schedule, c.kernel.text);
  };
  add("run", cuda::run_kernels());
  for (const cuda::CudaKernel& k : lstm_cell_kernels()) add(k.text.schedule, k.text);
  for (const cuda::CudaKernel& k : other_cell_kernels()) add(k.text.schedule, k.text);
  add_cases("library", library_kernels());
  add_cases("attention", row_attention_kernels());
  add_cases("attention", short_attention_kernels());
  add_cases("product", product_pass_kernels());
  add_cases("conv", conv_kernels());
  for (const TextCase& c : map_cases())
    if (seen["generated"] < 8) add("generated", emit_cuda(c.parts, c.target));
  return all;
}

struct Code {
  uint64_t bytes = 0;
  unsigned registers = 0;
  uint64_t hash = 0;
};

template <class T>
T read(const std::string& s, size_t at) {
  T v{};
  if (at + sizeof v <= s.size()) std::memcpy(&v, s.data() + at, sizeof v);
  return v;
}

/// All .text sections of a cubin (ELF64, little-endian).
Code code_of(const std::string& elf) {
  Code c;
  const auto headers = read<uint64_t>(elf, 40);
  const auto size = read<uint16_t>(elf, 58), count = read<uint16_t>(elf, 60),
             names = read<uint16_t>(elf, 62);
  const auto name_table = read<uint64_t>(elf, headers + names * size + 24);
  for (unsigned i = 0; i < count; ++i) {
    const uint64_t h = headers + i * size;
    if (elf.compare(name_table + read<uint32_t>(elf, h), 6, ".text.") != 0) continue;
    const auto begin = read<uint64_t>(elf, h + 24), bytes = read<uint64_t>(elf, h + 32);
    c.bytes += bytes;
    c.registers += read<uint32_t>(elf, h + 44) >> 24;
    uint64_t hash = 0xcbf29ce484222325ull;
    for (uint64_t b = begin; b < begin + bytes && b < elf.size(); ++b)
      hash = (hash ^ static_cast<unsigned char>(elf[b])) * 0x100000001b3ull;
    c.hash += hash;
  }
  return c;
}

}  // namespace

int main(int argc, char** argv) {
  const Nvrtc* nvrtc = Nvrtc::get();
  if (!nvrtc) {
    std::fprintf(stderr, "%s\n", Nvrtc::missing().c_str());
    return 1;
  }
  std::vector<std::string> archs(argv + 1, argv + argc);
  std::string only;
  if (archs.size() > 1 && archs[0] == "--only") {
    only = archs[1];
    archs.erase(archs.begin(), archs.begin() + 2);
  }
  if (archs.empty()) archs = {"sm_80", "sm_90"};
  const std::vector<NamedText> texts = all_texts();
  int refused = 0;
  for (const std::string& arch : archs) {
    std::map<std::string, Code> known;
    for (const NamedText& t : texts) {
      if (t.name.find(only) == std::string::npos) continue;
      // Clusters of blocks need sm_90.
      if (arch < "sm_90" && t.text.body.find("__cluster_dims__") != std::string::npos) continue;
      auto [at, fresh] = known.try_emplace(t.text.body);
      if (fresh) {
        NvrtcResult r = nvrtc->compile(t.text.source(), arch);
        if (!r.ok) {
          std::fprintf(stderr, "%s, %s:\n%s\n", t.name.c_str(), arch.c_str(),
                       r.log.substr(0, 3000).c_str());
          ++refused;
        }
        at->second = code_of(r.code);
      }
      std::printf("%s\t%s\t%" PRIu64 "\t%u\t%016" PRIx64 "\n", t.name.c_str(), arch.c_str(),
                  at->second.bytes, at->second.registers, at->second.hash);
      std::fflush(stdout);
    }
  }
  return refused != 0;
}
