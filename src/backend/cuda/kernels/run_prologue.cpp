// The kernels in front of and behind every run, and what hand-written texts share.
#include <cstdio>

#include "backend/cuda/kernels/kernels.h"

namespace ingot::cuda {
namespace {

const char* const kEdges = R"cuda(
#ifdef IG_EMULATED
#define IG_SYSTEM_FENCE
#else
#define IG_SYSTEM_FENCE __threadfence_system()
#endif
// n: 0 host slots, 1 words per slot, 2 slots - 1, 3 device block, 4 counter of slots used, 5 counter of runs, 6 records, 7 their number - 1
extern "C" __global__ void __launch_bounds__(512) ENTRY0(const IgParams<8> p) {
  ig_wait();
  volatile ig_u64* counter = (volatile ig_u64*)p.n[4];
  const ig_u64 used = *counter;
  const volatile long long* from = (const volatile long long*)p.n[0] + (used & (ig_u64)p.n[2]) * (ig_u64)p.n[1];
  long long* to = (long long*)p.n[3];
  for (long long i = threadIdx.x; i < p.n[1]; i += 512) to[i] = from[i];
  __syncthreads();
  if (threadIdx.x == 0) *counter = used + 1;
  if (threadIdx.x == 0 && !p.scratch) {  // else it goes on where the run before it ended
    IgStatus* s = p.status;
    s->code = 0; s->site = -1; s->value = 0; s->extent = 0;
  }
}
extern "C" __global__ void __launch_bounds__(32) ENTRY1(const IgParams<8> p) {
  ig_wait();
  if (threadIdx.x != 0) return;
  volatile ig_u64* runs = (volatile ig_u64*)p.n[5];
  const ig_u64 run = *runs;
  volatile long long* record = (volatile long long*)p.n[6] + (run & (ig_u64)p.n[7]) * 4;
  const volatile IgStatus* s = p.status;
  if (s->code) {  // else the rest of the record is 0, and nothing has to arrive before its number
    record[1] = (long long)(((ig_u64)(unsigned)s->site << 32) | (unsigned)s->code);
    record[2] = s->value;
    record[3] = s->extent;
    IG_SYSTEM_FENCE;
  }
  record[0] = (long long)(run + 1);
  *runs = run + 1;
}
)cuda";

std::string hash_text(const std::string& s) {
  uint64_t h = 0xcbf29ce484222325ull;
  for (unsigned char c : s) h = (h ^ c) * 0x100000001b3ull;
  char text[24];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(h));
  return text;
}

}  // namespace

void replace_all(std::string& s, const std::string& from, const std::string& to) {
  for (size_t at = s.find(from); at != std::string::npos; at = s.find(from, at + to.size()))
    s.replace(at, from.size(), to);
}

int64_t put_lines(const LibrarySpec& spec, std::vector<int64_t>& n) {
  const OperandSpec &out = spec.operands[0], &in = spec.operands[1];
  int64_t dims = 0;
  size_t at = 28;
  n[3] = 1;
  for (int d = 0; d < in.shape.size(); ++d) {
    if (d == axis_of(spec) || in.shape[d] == 1) continue;
    n[3] *= in.shape[d];
    n[at] = in.shape[d], n[at + 1] = out.stride[d], n[at + 2] = in.stride[d];
    at += 3;
    ++dims;
  }
  return dims;
}

std::string line_at_text(int offsets, int dims) {
  std::string s = R"cuda(
IG_FN void line_at(const P& p, long long line, long long& o, long long& i) {
  o = p.n[@1]; i = p.n[@2];
  for (int d = (int)p.n[@3] - 1; d >= 0; --d) {
    const long long* q = p.n + 28 + 3 * d;
    const long long at = line % q[0]; line /= q[0];
    o += at * q[1]; i += at * q[2];
  }
}
)cuda";
  replace_all(s, "@1", std::to_string(offsets));
  replace_all(s, "@2", std::to_string(offsets + 1));
  replace_all(s, "@3", std::to_string(dims));
  return s;
}

CudaText hand_text(const std::string& name, std::string body, std::vector<CudaStage> stages) {
  CudaText t;
  t.key = name + "_" + hash_text(body);
  t.schedule = name;
  std::string entry = "ig_" + t.key + "_";
  for (size_t at = body.find("ENTRY"); at != std::string::npos;
       at = body.find("ENTRY", at + entry.size()))
    body.replace(at, 5, entry);
  for (size_t s = 0; s < stages.size(); ++s) stages[s].entry = entry + std::to_string(s);
  t.body = std::move(body);
  t.stages = std::move(stages);
  return t;
}

CudaText run_edges() { return hand_text("edges", kEdges, {{"", 512, true}, {"", 32, false}}); }

TextType text_type(DType t) {
  switch (t) {
    case DType::Float64:
      return {"double", "double", "", ""};
    case DType::Float32:
      return {"float", "float", "", ""};
    case DType::Float16:
      return {"unsigned short", "float", "ig_up_f16", "ig_down_f16"};
    case DType::BFloat16:
      return {"unsigned short", "float", "ig_up_bf16", "ig_down_bf16"};
    case DType::Int64:
      return {"long long", "long long", "", ""};
    case DType::Int32:
      return {"int", "int", "", ""};
    case DType::Int16:
      return {"short", "short", "", ""};
    case DType::Int8:
      return {"signed char", "signed char", "", ""};
    case DType::UInt8:
      return {"unsigned char", "unsigned char", "", ""};
    case DType::Bool:
      return {"unsigned char", "unsigned char", "", ""};
  }
  return {};
}

}  // namespace ingot::cuda
