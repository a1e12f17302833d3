// See kernel.h. The tasks of all parts of a launch are one range that the threads share, so a
// thousand small parts cost one start of the thread pool. Split parts add a merge between passes.
#include "backend/cpu/kernel/kernel.h"

#include <algorithm>

#include "backend/cpu/jit/column_code.h"
#include "backend/cpu/jit/row_code.h"
#include "backend/cpu/kernel/pieces.h"
#include "backend/cpu/support/threads.h"

namespace ingot::cpu {

namespace {
constexpr int64_t kSerialWork =
    16 << 10;  // elements below which waking threads costs more than it gains

bool same_numbers(const KernelSpec& a, const KernelSpec& b) {
  if (a.extent != b.extent || !same_structure(a, b)) return false;
  for (size_t k = 0; k < a.instrs.size(); ++k) {
    const Instr &p = a.instrs[k], &q = b.instrs[k];
    if (!(p.map == q.map) || !(p.bounds == q.bounds) || p.indirect_stride != q.indirect_stride ||
        p.indirect_extent != q.indirect_extent)
      return false;
  }
  for (size_t k = 0; k < a.stores.size(); ++k)
    if (!(a.stores[k].map == b.stores[k].map)) return false;
  return true;
}
}  // namespace

Kernel::Kernel(std::span<const KernelSpec> given) {
  // Each piece works on the buffers of its part.
  std::vector<KernelSpec> parts;
  std::vector<int> first_buffer;
  int buffers = 0;
  for (const KernelSpec& part : given) {
    for (KernelSpec& piece : pieces_of(part)) {
      parts.push_back(std::move(piece));
      first_buffer.push_back(buffers);
    }
    buffers += static_cast<int>(part.buffers.size());
  }
  std::vector<size_t> made_from;
  for (size_t k = 0; k < parts.size(); ++k) {
    const Plan* plan = nullptr;
    // Identical parts share a plan; comparing with a few earlier ones finds nearly all of them.
    for (size_t back = made_from.size(); back-- > 0 && made_from.size() - back <= 4 && !plan;)
      if (same_numbers(parts[made_from[back]], parts[k])) plan = plans_[back].get();
    if (!plan) {
      plans_.push_back(make_plan(parts[k]));
      made_from.push_back(k);
      plan = plans_.back().get();
    }
    const int64_t scratch = static_cast<int64_t>(scratch_bytes);
    scratch_bytes += static_cast<size_t>(plan->scratch_bytes());
    parts_.push_back({plan, first_buffer[k], scratch});
  }
  size_t most = 0;
  for (const auto& plan : plans_) most = std::max(most, plan->thread_bytes);
  require_thread_memory(most);
  for (int k = 0; k < static_cast<int>(parts_.size()); ++k) {
    const Plan& p = *parts_[static_cast<size_t>(k)].plan;
    splits_ |= p.splits > 1;
    const size_t rounds = p.splits > 1 ? p.rounds.size() : 1;
    if (passes_.size() < rounds) passes_.resize(rounds);
    for (size_t r = 0; r < rounds; ++r) {
      if (p.splits > 1 && p.rounds[r].elem.empty() && !p.rounds[r].columns) continue;
      Pass& pass = passes_[r];
      pass.part.push_back(k);
      pass.first.push_back(pass.tasks);
      pass.tasks += p.boxes * p.splits;
      pass.work += p.work;
    }
  }
  launches = static_cast<int>(passes_.size());
}

static size_t held(const std::vector<Step>& steps) { return steps.capacity() * sizeof(Step); }

static size_t held(const Plan& p) {
  size_t n = sizeof p + held(p.prologue) + p.rounds.capacity() * sizeof(Round) +
             p.refs.capacity() * sizeof(MemoryRef) + p.places.capacity() * sizeof(ValuePlace) +
             p.constants.size() * 64 + (p.rows ? p.rows->host_bytes() : 0);
  for (const Round& r : p.rounds)
    n += held(r.outer) + held(r.init) + held(r.elem) + r.accumulators.capacity() * 4 +
         (r.columns ? r.columns->host_bytes() : 0);
  for (const MemoryRef& r : p.refs) n += r.bounds.capacity() * sizeof(AccessBound);
  return n;
}

size_t Kernel::host_bytes() const {
  size_t n = sizeof *this + parts_.capacity() * sizeof(Part) + passes_.capacity() * sizeof(Pass);
  for (const auto& p : plans_) n += held(*p);
  for (const Pass& p : passes_) n += p.part.capacity() * 4 + p.first.capacity() * 8;
  return n;
}

char* Kernel::box_area(const Part& p, char* scratch, int64_t box) const {
  return scratch + p.scratch + box * p.plan->box_bytes;
}
char* Kernel::acc_area(const Part& p, char* scratch, int64_t box, int64_t split) const {
  const Plan& q = *p.plan;
  return scratch + p.scratch + q.boxes * q.box_bytes + (box * (q.splits + 1) + split) * q.acc_bytes;
}

void Kernel::run_tasks(const Pass& pass, size_t round, int64_t begin, int64_t end,
                       void* const* buffers, char* scratch, const RunArgs& args) {
  size_t k = static_cast<size_t>(std::upper_bound(pass.first.begin(), pass.first.end(), begin) -
                                 pass.first.begin()) -
             1;
  for (; begin < end; ++k) {
    const Part& part = parts_[static_cast<size_t>(pass.part[k])];
    const Plan& plan = *part.plan;
    const int64_t base = pass.first[k], stop = std::min(end, base + plan.boxes * plan.splits);
    if (plan.rows) {
      plan.rows->run(plan, begin - base, stop - base, buffers + part.first_buffer, args);
      begin = stop;
      continue;
    }
    Exec exec(plan, buffers + part.first_buffer, args);
    if (plan.splits == 1) {
      exec.boxes(begin - base, stop - base);
    } else {
      for (int64_t t = begin - base; t < stop - base; ++t) {
        const int64_t box = t / plan.splits, split = t % plan.splits;
        exec.piece(box, split, round, box_area(part, scratch, box),
                   acc_area(part, scratch, box, split + 1));
      }
    }
    begin = stop;
  }
}

void Kernel::run_pass(const Pass& pass, size_t round, void* const* buffers, char* scratch,
                      const RunArgs& args) {
  if (pass.tasks == 0) return;
  if (pass.tasks == 1 || pass.work < kSerialWork)
    return run_tasks(pass, round, 0, pass.tasks, buffers, scratch, args);
  const int64_t per_task = std::max<int64_t>(1, pass.work / pass.tasks);
  const int64_t pieces = 8 * get_num_threads();
  const int64_t grain = std::max({int64_t{1}, (kSerialWork / 2) / per_task, pass.tasks / pieces});
  parallel_for(pass.tasks, grain,
               [&](int64_t b, int64_t e) { run_tasks(pass, round, b, e, buffers, scratch, args); });
}

/// Merges the accumulators of the previous round (if any) and runs the steps before the tiles of
/// this one.
void Kernel::merge_pass(size_t round, void* const* buffers, char* scratch, const RunArgs& args) {
  for (const Part& part : parts_) {
    const Plan& p = *part.plan;
    if (p.splits == 1 || round >= p.rounds.size()) continue;
    const int64_t grain = p.acc_bytes * p.splits * p.boxes < (64 << 10) ? p.boxes : 1;
    parallel_for(p.boxes, grain, [&](int64_t b, int64_t e) {
      Exec exec(p, buffers + part.first_buffer, args);
      for (int64_t box = b; box < e; ++box) {
        char* acc = acc_area(part, scratch, box, 0);
        if (round > 0) exec.merge(box, round - 1, acc, p.splits);
        exec.between(box, round, box_area(part, scratch, box), acc);
      }
    });
  }
}

void Kernel::run(void* const* buffers, void* scratch, const RunArgs& args) {
  char* s = static_cast<char*>(scratch);
  if (!splits_) return run_pass(passes_[0], 0, buffers, s, args);
  for (size_t r = 0; r < passes_.size(); ++r) {
    merge_pass(r, buffers, s, args);
    run_pass(passes_[r], r, buffers, s, args);
  }
}

}  // namespace ingot::cpu
