// See kernel_source.h.
#include "backend/cuda/kernels/kernel_source.h"

#include <cstdio>

#include "ingot/error.h"

namespace ingot::cuda {
namespace {

// What every device text begins with.
const char* const kCommon = R"cuda(
typedef long long Address;
// A kernel's argument: what every launch passes, then the kernel's own parameters.
struct LaunchHeader {
  const double* args; const ig_u64* seeds; const ig_u64* offsets; IgStatus* status;
  unsigned char* scratch; const long long* table;
};
template <class Params> struct Argument : LaunchHeader, Params {};
// A dtype: the type in memory, the type that is computed in, and the conversions.
template <class M> struct Plain {
  typedef M Memory;
  typedef M Compute;
  IG_FN M up(M x) { return x; }
  IG_FN M down(M x) { return x; }
};
typedef Plain<double> Float64;
typedef Plain<float> Float32;
typedef Plain<long long> Int64;
typedef Plain<int> Int32;
typedef Plain<short> Int16;
typedef Plain<signed char> Int8;
typedef Plain<unsigned char> UInt8;
struct Float16 {
  typedef unsigned short Memory;
  typedef float Compute;
  IG_FN float up(Memory x) { return ig_up_f16(x); }
  IG_FN Memory down(float x) { return ig_down_f16(x); }
  IG_FN unsigned pair(float lo, float hi) { return ig_pair_f16(lo, hi); }
  IG_FN void mma(float* c, unsigned a0, unsigned a1, unsigned a2, unsigned a3, unsigned b0, unsigned b1) {
    ig_mma_f16(c, a0, a1, a2, a3, b0, b1);
  }
};
struct BFloat16 {
  typedef unsigned short Memory;
  typedef float Compute;
  IG_FN float up(Memory x) { return ig_up_bf16(x); }
  IG_FN Memory down(float x) { return ig_down_bf16(x); }
  IG_FN unsigned pair(float lo, float hi) { return ig_pair_bf16(lo, hi); }
  IG_FN void mma(float* c, unsigned a0, unsigned a1, unsigned a2, unsigned a3, unsigned b0, unsigned b1) {
    ig_mma_bf16(c, a0, a1, a2, a3, b0, b1);
  }
};
)cuda";

std::string hash_text(const std::string& s) {
  uint64_t h = 0xcbf29ce484222325ull;
  for (unsigned char c : s) h = (h ^ c) * 0x100000001b3ull;
  char text[24];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(h));
  return text;
}

/// The entry point of a stage.
std::string entry_text(const KernelStage& s, const std::string& entry, const char* params) {
  const std::string cluster =
      s.cluster > 1 ? "__cluster_dims__(" + std::to_string(s.cluster) + ", 1, 1) " : "";
  return "extern \"C\" __global__ void " + cluster + "__launch_bounds__(" +
         std::to_string(s.threads) + ") " + entry + "(const Argument<" + params + "> p) { " +
         s.function + "(p); }\n";
}

}  // namespace

std::string template_argument(DType t) {
  switch (t) {
    case DType::Float64:
      return "Float64";
    case DType::Float32:
      return "Float32";
    case DType::Float16:
      return "Float16";
    case DType::BFloat16:
      return "BFloat16";
    case DType::Int64:
      return "Int64";
    case DType::Int32:
      return "Int32";
    case DType::Int16:
      return "Int16";
    case DType::Int8:
      return "Int8";
    case DType::UInt8:
    case DType::Bool:
      return "UInt8";
  }
  return {};
}

CallTraits& CallTraits::type(const char* name, std::string_view is) {
  members_ += "  typedef " + std::string(is) + " " + name + ";\n";
  return *this;
}

CallTraits& CallTraits::value(const char* name, int64_t is) {
  const bool fits = is == static_cast<int32_t>(is);
  members_ += std::string("  static constexpr ") + (fits ? "int " : "long long ") + name + " = " +
              std::to_string(is) + ";\n";
  return *this;
}

CallTraits& CallTraits::flag(const char* name, bool is) {
  members_ +=
      std::string("  static constexpr bool ") + name + " = " + template_argument(is) + ";\n";
  return *this;
}

CudaKernel make_kernel(const std::string& name, const ParamsText& params, const std::string& text,
                       const std::vector<KernelStage>& stages, std::vector<int64_t> words) {
  CudaKernel k;
  k.text.schedule = name;
  k.text.body = kCommon + std::string(params.definition) + text;
  std::string hashed = k.text.body;
  for (const KernelStage& s : stages) hashed += entry_text(s, "", params.name);
  k.text.key = name + "_" + hash_text(hashed);
  for (const KernelStage& s : stages) {
    if (s.blocks > 0x7fffffff)
      throw Error(ErrorKind::Unsupported, name, "a kernel of more than 2^31 blocks");
    const std::string entry = "ig_" + k.text.key + "_" + std::to_string(k.text.stages.size());
    k.text.body += entry_text(s, entry, params.name);
    k.text.stages.push_back({entry, s.threads, s.barriers});
    k.launch.stages.push_back({static_cast<unsigned>(s.blocks), s.shared_bytes});
  }
  k.launch.part_words = static_cast<int>(words.size());
  k.launch.words = std::move(words);
  return k;
}

}  // namespace ingot::cuda
