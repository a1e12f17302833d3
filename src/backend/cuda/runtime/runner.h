// Runs of plans on one GPU: parameters up, kernels in order, status back.
//
// Each run begins with a small kernel that copies the run's parameters (arguments, seeds,
// addresses) from pinned host memory into device memory and clears the status word, and ends with
// one that writes the status and the run's number into pinned memory, where the host reads it. So a
// run needs no event and no copy call, and a captured graph takes its new parameters by itself: one
// launch per run.
//
// A plan seen for the second time is captured. Buffers whose addresses have changed between runs
// are reached through the parameters, the others directly. Library calls need the addresses
// themselves: a graph is kept for each set of them that comes (they alternate between few), up to a
// limit, beyond which the plan is launched kernel by kernel.
//
// The host runs ahead by at most kAhead runs. All calls are made under the GPU's lock.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "backend/cuda/runtime/executable.h"

namespace ingot::cuda {

class Gpu;

/// INGOT_CUDA_EARLY=0: no kernel is launched before the previous one has ended. GPUs before sm_90
/// cannot do that.
bool early_wanted(const Gpu& gpu);

class Runner {
 public:
  static constexpr uint64_t kAhead = 8, kRecords = 32;  // powers of two: the GPU counts by masks

  explicit Runner(Gpu& gpu) : gpu_(gpu) {}
  /// The ticket of the run.
  uint64_t run(uint64_t plan, std::span<const LaunchItem> items, const RunArgs& args);
  /// The same launch by launch, with the time each took on the device.
  uint64_t run_timed(std::span<const LaunchItem> items, const RunArgs& args,
                     std::vector<double>& microseconds);
  /// Frees what is kept for a plan that is no longer run.
  void forget(uint64_t plan);
  /// Is that run over? Then its status.
  bool poll(uint64_t ticket, bool wait, RunStatus& status);
  uint64_t started() const { return started_; }
  /// The newest run that is known to be over.
  uint64_t finished() { return collect(), finished_; }
  int captures() const { return captures_; }

 private:
  struct Graph {
    std::vector<void*> key;  // the library calls' addresses
    CUgraphExec exec = nullptr;
    void* tables = nullptr;
    size_t table_bytes = 0;
  };
  /// What a plan's graphs share.
  struct PlanState {
    uint64_t runs = 0;
    uint64_t last = 0;             // newest run of it
    std::vector<void*> addresses;  // of the last run: per item its buffers, then its scratch
    std::vector<uint8_t> fixed;    // per address: a library call's or scratch
    std::vector<int> moving;       // per address: its index among the moving ones, or -1
    int n_moving = 0;
    int captured = 0;
    bool plain = false;             // not captured any more
    int64_t* host_slots = nullptr;  // pinned: kAhead slots
    void* block = nullptr;  // device memory: the counter of runs, then the slot of the current run
    size_t slot_words = 0;
    uint64_t graph_runs = 0;
    std::vector<Graph> graphs;
  };
  /// Memory that plain runs use in turn.
  struct Slot {
    int64_t* host = nullptr;
    void* device = nullptr;
    size_t words = 0;
  };

  void start();
  uint64_t begin_run(std::span<const LaunchItem> items);
  void collect();
  void wait_for(uint64_t run);
  void run_plain(std::span<const LaunchItem> items, const RunArgs& args, uint64_t run,
                 std::span<const CUevent> marks = {});
  void run_graph(PlanState& p, std::span<const LaunchItem> items, const RunArgs& args,
                 uint64_t run);
  bool learn(PlanState& p, std::span<const LaunchItem> items);
  void set_layout(PlanState& p, const RunArgs& args);
  Graph& graph_for(PlanState& p, std::span<const LaunchItem> items, const RunArgs& args);
  void enqueue_beside(const PlanState& p, std::span<const LaunchItem> items,
                      const int64_t* pointers, LaunchSite site, const int64_t* table, bool beside);
  void capture(PlanState& p, Graph& g, std::span<const LaunchItem> items, const RunArgs& args);
  void enqueue_run_kernel(int stage, CUstream stream, const int64_t* host, size_t words,
                          uint64_t slots, void* block, bool after_kernel = false,
                          bool continues = false);
  void drop_graphs(PlanState& p);
  void drop_layout(PlanState& p);
  void forget_old_plans();

  Gpu& gpu_;
  uint64_t started_ = 0, finished_ = 0;
  int captures_ = 0;
  std::unordered_map<uint64_t, RunStatus>
      failed_;  // runs that ended with an error nobody has asked for yet
  std::unordered_map<uint64_t, std::unique_ptr<PlanState>> plans_;
  std::vector<Slot> slots_;
  int lanes_ = 1;               // of the graph that is being captured
  std::vector<CUevent> marks_;  // of captured launches
  int64_t* records_ = nullptr;  // pinned
  char* state_ = nullptr;       // device: counter of runs, counter of plain slots, status word
  std::shared_ptr<Module> run_kernels_;
};

}  // namespace ingot::cuda
