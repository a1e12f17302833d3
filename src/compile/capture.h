// capture(fn): the runs of one call, kept so that the next calls repeat them without recording
// anything.
#pragma once
#include <memory>
#include <span>
#include <vector>

#include "compile/run_errors.h"
#include "graph/thread_state.h"
#include "runtime/storage.h"

namespace ingot {

/// Buffers held here are counted in Storage::captured.
struct CapturedRun {
  std::shared_ptr<Plan> plan;  // while the call is being recorded
  std::weak_ptr<Plan> kept;    // afterwards: by the plan cache, which may evict it
  std::vector<Ref<Storage>> leaves, outputs;
  std::vector<const Node*> leaf_nodes;  // to know the call's inputs by; not held
  std::vector<int> copied;              // leaves that are assigned to, but not in place
  std::vector<double> args;
  std::vector<std::shared_ptr<const double>> arg_sources;
  std::vector<uint64_t> seeds, offsets;
  std::vector<CheckSite> sites;
};
struct CaptureLog {
  std::vector<CapturedRun> runs;
};
/// Where this thread's runs are noted, or null.
inline CaptureLog*& capture_log() { return this_thread.capture; }

/// What is kept of a run with these buffers.
CapturedRun captured_run(const Trace& t, const std::shared_ptr<Plan>& plan,
                         std::span<Storage* const> leaves, const std::vector<Ref<Storage>>& out);
/// Counts its buffers as held by a captured function, or (-1) no longer.
void count_captured(CapturedRun& r, int by);

/// Repeats it on these buffers and numbers.
void run_captured(const CapturedRun& r, const Plan& plan, std::span<const Ref<Storage>> leaves,
                  std::span<const Ref<Storage>> outputs, std::span<const double> args,
                  std::span<const uint64_t> seeds, std::span<const uint64_t> offsets);

}  // namespace ingot
