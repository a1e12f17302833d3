// Puts kernels together (declarations of numbers and buffers, then the emitter's statements) and
// computes what a launch needs. See emit/text.h for the layout of the kernel's argument.
#include "backend/cuda/emit/text.h"

#include <algorithm>
#include <cstring>
#include <memory>

#include "backend/cuda/emit/emit.h"
#include "backend/cuda/emit/layout.h"
#include "ingot/error.h"

namespace ingot {
namespace {

using cuda::str;

std::string hash_text(const std::string& s) {
  uint64_t a = 0xcbf29ce484222325ull, b = 0x9e3779b97f4a7c15ull;
  for (unsigned char c : s) {
    a = (a ^ c) * 0x100000001b3ull;
    b = (b + c) * 0xff51afd7ed558ccdull;
    b ^= b >> 29;
  }
  char text[40];
  std::snprintf(text, sizeof text, "%016llx%016llx", static_cast<unsigned long long>(a),
                static_cast<unsigned long long>(b));
  return text;
}

/// Everything of a kernel before its statements.
std::string head(const KernelSpec& k, const cuda::Plan& plan, bool many, int stage,
                 const cuda::Schedule& schedule) {
  int words = plan.n_buffers + static_cast<int>(plan.numbers.list().size());
  std::string s = "extern \"C\" __global__ void __launch_bounds__(" + str(schedule.threads()) +
                  (schedule.min_blocks > 1 ? ", " + str(schedule.min_blocks) : "") + ") ENTRY" +
                  str(stage) + "(const IgParams<" + str(many ? 1 : words) + "> p) {\nig_wait();\n";
  s += plan.schedule.wide ? "typedef long long I; typedef unsigned long long UI;\n"
                          : "typedef int I; typedef unsigned UI;\n";
  if (many) {
    s += "const int parts = (int)p.n[0];\n";
    s += "const long long* firsts = p.table + " + str(stage) + " * parts;\n";
    s += "const int part = ig_part(firsts, parts, blockIdx.x);\n";
    s += "const unsigned blk = blockIdx.x - (unsigned)__ldg(firsts + part);\n";
    s += "const long long* words = p.table + " + str(plan.n_stages) +
         " * parts + (long long)part * " + str(words) + ";\n";
  } else {
    s += "const unsigned blk = blockIdx.x;\n";
  }
  auto word = [&](int n) { return many ? "__ldg(words + " + str(n) + ")" : "p.n[" + str(n) + "]"; };
  for (int b = 0; b < plan.n_buffers; ++b) {
    std::string m = cuda::memory_type(k.buffers[b].dtype);
    s += m + "* const b" + str(b) + " = (" + m + "*)ig_pointer(" + word(b) + ");\n";
  }
  int n = plan.n_buffers;
  for (const auto& e : plan.numbers.list()) {
    s += e.magic ? "const long long " + e.name + " = " + word(n) + ";\n"
                 : "const I " + e.name + " = (I)" + word(n) + ";\n";
    ++n;
  }
  return s;
}

cuda::Schedule second_stage(const cuda::Schedule& first) {
  cuda::Schedule s = first;
  s.lanes = 1;
  s.team = first.stage2_team;
  s.side = first.stage2_side;
  s.groups = 1;
  s.tail = s.exact = s.shifted = false;
  s.min_blocks = 0;
  std::fill(s.load_width.begin(), s.load_width.end(), 1);
  std::fill(s.store_width.begin(), s.store_width.end(), 1);
  return s;
}

bool has_barriers(const std::string& text) {
  return text.find("__syncthreads") != std::string::npos ||
         text.find("ig_shuffle") != std::string::npos ||
         text.find("ig_from_lane0") != std::string::npos;
}

void replace_all(std::string& s, const std::string& from, const std::string& to) {
  for (size_t at = s.find(from); at != std::string::npos; at = s.find(from, at + to.size()))
    s.replace(at, from.size(), to);
}

}  // namespace

CudaText emit_cuda(std::span<const KernelSpec> parts, const CudaTarget& target) {
  if (parts.empty()) throw Error(ErrorKind::Internal, "emit_cuda", "a kernel without parts");
  for (const KernelSpec& k : parts)
    if (!same_structure(parts[0], k))
      throw Error(ErrorKind::Internal, "emit_cuda", "parts of different structure");
  cuda::Layout layout = cuda::choose_layout(parts, target);
  std::vector<KernelSpec> laid_out;
  if (!layout.plain()) {
    for (const KernelSpec& k : parts) laid_out.push_back(cuda::lay_out(k, layout));
    parts = laid_out;
  }
  auto plan = std::make_shared<cuda::Plan>();
  std::vector<KernelSpec> places;
  if (SingleIndex single = find_single_index(parts); single.axis >= 0) {
    for (const KernelSpec& k : parts) places.push_back(cuda::at_single_index(k, single));
    plan->schedule = cuda::choose_schedule(places, target);
    if (plan->schedule.mode == cuda::Mode::Map) {
      plan->single = single;
      parts = places;
    }
  }
  if (plan->single.axis < 0) plan->schedule = cuda::choose_schedule(parts, target);
  plan->target = target;
  plan->layout = std::move(layout);
  plan->n_buffers = static_cast<int>(parts[0].buffers.size());
  plan->n_stages = plan->schedule.split ? 2 : 1;

  cuda::ElementwiseFunctions functions;
  std::vector<cuda::Schedule> schedules{plan->schedule};
  if (plan->schedule.split) schedules.push_back(second_stage(plan->schedule));
  std::vector<std::string> bodies;
  bodies.reserve(schedules.size());
  for (int n = 0; n < plan->n_stages; ++n)
    bodies.push_back(
        cuda::Emitter(parts, schedules[n], n, plan->numbers, functions, plan->single).body());

  bool many =
      parts.size() > 1 || plan->n_buffers + plan->numbers.list().size() > 480;  // 4 KB of arguments
  CudaText text;
  text.waits = true;
  text.body = functions.definitions();
  for (int n = 0; n < plan->n_stages; ++n) {
    auto threads = static_cast<unsigned>(schedules[n].threads());
    text.body += head(parts[0], *plan, many, n, schedules[n]) + bodies[n] + "}\n";
    text.stages.push_back({"ENTRY" + str(n), threads, has_barriers(bodies[n])});
  }
  text.key = hash_text(text.body);
  replace_all(text.body, "ENTRY", "ig_" + text.key + "_");
  for (CudaStage& s : text.stages) replace_all(s.entry, "ENTRY", "ig_" + text.key + "_");
  text.schedule = describe(plan->schedule);
  plan->table = many;
  text.plan = plan;
  return text;
}

std::string cuda_structure_key(std::span<const KernelSpec> parts, const CudaTarget& target) {
  return emit_cuda(parts, target).key;
}

std::string CudaText::source() const { return cuda_prelude() + body; }

CudaLaunch CudaText::launch(std::span<const KernelSpec> parts) const {
  std::vector<KernelSpec> laid_out;
  if (!plan->layout.plain()) {
    for (const KernelSpec& k : parts) laid_out.push_back(cuda::lay_out(k, plan->layout));
    parts = laid_out;
  }
  std::vector<KernelSpec> places;
  if (plan->single.axis >= 0) {
    for (const KernelSpec& k : parts) places.push_back(cuda::at_single_index(k, plan->single));
    parts = places;
  }
  CudaLaunch l;
  int n_parts = static_cast<int>(parts.size());
  l.part_words = plan->n_buffers + static_cast<int>(plan->numbers.list().size());
  l.stages.resize(stages.size());
  std::vector<int64_t> words;
  std::vector<std::vector<int64_t>> firsts(stages.size());
  int64_t blocks[2] = {0, 0}, groups = 0;
  for (const KernelSpec& k : parts) {
    cuda::Geometry g = geometry(plan->schedule, k, plan->target);
    for (int64_t& offset : g.scratch) offset += static_cast<int64_t>(l.scratch_bytes);
    l.scratch_bytes += static_cast<size_t>(g.scratch_bytes);
    groups = std::max(groups, g.inner_groups);
    words.insert(words.end(), plan->n_buffers, 0);
    for (const auto& e : plan->numbers.list()) words.push_back(e.value(k, g));
    for (size_t s = 0; s < stages.size(); ++s) {
      firsts[s].push_back(blocks[s]);
      blocks[s] += g.blocks[s];
    }
  }
  for (size_t s = 0; s < stages.size(); ++s) {
    if (blocks[s] > 0x7fffffff)
      throw Error(ErrorKind::Unsupported, "cuda", "a kernel of more than 2^31 blocks");
    l.stages[s].grid = static_cast<unsigned>(blocks[s]);
  }
  l.stages[0].shared_bytes = static_cast<unsigned>(shared_bytes(parts[0], plan->schedule, groups));
  if (!plan->table) {
    l.words = std::move(words);
    return l;
  }
  l.words = {n_parts};
  for (auto& f : firsts) l.table.insert(l.table.end(), f.begin(), f.end());
  l.first_part = static_cast<int>(l.table.size());
  l.table.insert(l.table.end(), words.begin(), words.end());
  return l;
}

std::vector<int64_t> CudaLaunch::argument(const CudaHeader& header) const {
  static_assert(sizeof(CudaHeader) == 6 * sizeof(int64_t));
  std::vector<int64_t> a(6 + words.size());
  std::memcpy(a.data(), &header, sizeof header);
  std::copy(words.begin(), words.end(), a.begin() + 6);
  return a;
}

}  // namespace ingot
