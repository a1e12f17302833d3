// See runner.h.
#include "backend/cuda/runtime/runner.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <memory>

#include "backend/cuda/kernels/run_params.h"
#include "backend/cuda/runtime/gpu.h"
#include "base/env.h"
#include "ingot/error.h"

namespace ingot::cuda {
namespace {

constexpr size_t kMostPlans = 256;  // whose graphs are kept
constexpr size_t kMostGraphs = 8;   // of one plan
constexpr int kMostCaptures = 40;   // of one plan, before it is launched kernel by kernel for good
// Launches that a captured call's graph lets overlap: long chains of large ones lost by it, and
// launching such a graph takes the host longer, which a loop that records each step does not have.
constexpr size_t kMostBeside = 32;
constexpr size_t kRecordWords = 4;   // run, code and site, value, extent
constexpr size_t kStateBytes = 256;  // counter of runs, counter that plain runs count on, status
constexpr size_t kBlockHeader = 8;   // words before a plan's slot in device memory

bool graphs_wanted() {
  static const bool on = env::flag("INGOT_CUDA_GRAPH");
  return on;
}

CudaExecutable& executable(const LaunchItem& i) { return static_cast<CudaExecutable&>(*i.exe); }

int64_t* pinned(size_t words) {
  void* p = nullptr;
  check(
      driver().mem_host_alloc(&p, words * 8, CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP),
      "allocating pinned memory");
  std::memset(p, 0, words * 8);
  return static_cast<int64_t*>(p);
}

size_t parameter_words(const RunArgs& a) {
  return static_cast<size_t>(a.n_args) + 2 * static_cast<size_t>(a.n_seeds);
}

/// Arguments, seeds and offsets, one after the other.
int64_t* write_parameters(int64_t* at, const RunArgs& a) {
  size_t n = static_cast<size_t>(a.n_args), s = static_cast<size_t>(a.n_seeds);
  if (n) std::memcpy(at, a.args, n * 8);
  if (s) std::memcpy(at + n, a.seeds, s * 8);
  if (s) std::memcpy(at + n + s, a.offsets, s * 8);
  return at + n + 2 * s;
}

CudaHeader header_at(const void* parameters, const RunArgs& a, void* status) {
  CudaHeader h;
  const auto* p = static_cast<const int64_t*>(parameters);
  h.args = reinterpret_cast<const double*>(p);
  h.seeds = reinterpret_cast<const uint64_t*>(p + a.n_args);
  h.offsets = reinterpret_cast<const uint64_t*>(p + a.n_args + a.n_seeds);
  h.status = status;
  return h;
}

}  // namespace

bool early_wanted(const Gpu& gpu) {
  static const bool on = env::flag("INGOT_CUDA_EARLY");
  return on && gpu.major >= 9;
}

void Runner::start() {
  if (state_) return;
  records_ = pinned(kRecords * kRecordWords);
  CudaText text = run_kernels();
  run_kernels_ = gpu_.modules->get(text);
  run_kernels_->function(0, 0);
  char* state = static_cast<char*>(gpu_.allocate(kStateBytes));
  if (!state) throw Error(ErrorKind::OutOfMemory, "cuda", "the GPU has no room for 256 bytes");
  check(
      driver().memset_d8_async(reinterpret_cast<CUdeviceptr>(state), 0, kStateBytes, gpu_.compute),
      "clearing memory");
  slots_.resize(kAhead);
  state_ = state;
}

// What comes before every run; its number.
uint64_t Runner::begin_run(std::span<const LaunchItem> items) {
  start();
  for (const LaunchItem& i : items) executable(i).ready();
  {
    std::lock_guard lock(gpu_.memory_mutex);
    gpu_.memory.run_begins();
  }
  gpu_.join_copies();
  if (started_ >= kAhead) wait_for(started_ + 1 - kAhead);
  return started_ + 1;
}

uint64_t Runner::run_timed(std::span<const LaunchItem> items, const RunArgs& args,
                           std::vector<double>& microseconds) {
  uint64_t run = begin_run(items);
  std::vector<CUevent> marks(items.size() + 1);
  for (CUevent& m : marks) check(driver().event_create(&m, CU_EVENT_DEFAULT), "making an event");
  run_plain(items, args, run, marks);
  check(driver().event_synchronize(marks.back()), "waiting for a run");
  for (size_t i = 0; i < items.size(); ++i) {
    float ms = 0;
    check(driver().event_elapsed_time(&ms, marks[i], marks[i + 1]), "measuring a launch");
    microseconds.push_back(ms * 1e3);
  }
  for (CUevent m : marks) driver().event_destroy(m);
  return run;
}

uint64_t Runner::run(uint64_t plan, std::span<const LaunchItem> items, const RunArgs& args) {
  uint64_t run = begin_run(items);
  if (plan == 0 || !graphs_wanted()) {
    run_plain(items, args, run);
    return run;
  }
  auto& state = plans_[plan];
  if (!state) {
    state = std::make_unique<PlanState>();
    if (plans_.size() > kMostPlans) forget_old_plans();
  }
  PlanState& p = *plans_[plan];
  p.last = run;
  bool steady = learn(p, items);
  if (++p.runs < 2 || p.plain)
    run_plain(items, args, run);
  else {
    if (!steady || !p.block) set_layout(p, args);
    run_graph(p, items, args, run);
  }
  return run;
}

// Notes which addresses have changed since the last run. False: more of them move than the graphs
// know.
bool Runner::learn(PlanState& p, std::span<const LaunchItem> items) {
  std::vector<void*> now;
  now.reserve(p.addresses.size());
  for (const LaunchItem& i : items) {
    now.insert(now.end(), i.buffers, i.buffers + i.n_buffers);
    now.push_back(i.scratch);
  }
  bool steady = true;
  if (p.addresses.size() != now.size()) {
    p.moving.assign(now.size(), -1);
    p.n_moving = 0;
    p.fixed.clear();
    for (const LaunchItem& i : items) {
      p.fixed.insert(p.fixed.end(), static_cast<size_t>(i.n_buffers),
                     executable(i).fixed_addresses());
      p.fixed.push_back(1);
    }
    steady = false;
  } else {
    for (size_t k = 0; k < now.size(); ++k)
      if (now[k] != p.addresses[k] && !p.fixed[k] && p.moving[k] < 0) {
        p.moving[k] = p.n_moving++;
        steady = false;
      }
  }
  p.addresses = std::move(now);
  return steady;
}

void Runner::drop_graphs(PlanState& p) {
  if (p.graphs.empty()) return;
  check(driver().stream_synchronize(gpu_.compute), "waiting for the GPU");
  for (Graph& g : p.graphs) {
    if (g.exec) driver().graph_exec_destroy(g.exec);
    if (g.tables) gpu_.deallocate(g.tables, g.table_bytes);
  }
  p.graphs.clear();
}

void Runner::drop_layout(PlanState& p) {
  drop_graphs(p);
  if (p.block) {
    check(driver().stream_synchronize(gpu_.compute), "waiting for the GPU");
    gpu_.deallocate(p.block, (kBlockHeader + p.slot_words) * 8);
    driver().mem_free_host(p.host_slots);
  }
  p.block = nullptr;
  p.host_slots = nullptr;
  p.graph_runs = 0;
}

void Runner::set_layout(PlanState& p, const RunArgs& args) {
  drop_layout(p);
  p.slot_words = parameter_words(args) + static_cast<size_t>(p.n_moving);
  size_t bytes = (kBlockHeader + p.slot_words) * 8;
  p.host_slots = pinned(std::max<size_t>(p.slot_words, 1) * kAhead);
  p.block = gpu_.allocate(bytes);
  if (!p.block)
    throw Error(ErrorKind::OutOfMemory, "cuda", "the GPU has no room for the parameters of a run");
  check(driver().memset_d8_async(reinterpret_cast<CUdeviceptr>(p.block), 0, bytes, gpu_.compute),
        "clearing memory");
}

void Runner::forget(uint64_t plan) {
  for (auto it = plans_.begin(); it != plans_.end();)
    if (it->first / kPartsOfPlan == plan) {
      drop_layout(*it->second);
      it = plans_.erase(it);
    } else {
      ++it;
    }
}

void Runner::forget_old_plans() {
  std::vector<std::pair<uint64_t, uint64_t>> by_age;
  for (auto& [id, p] : plans_)
    if (p->last) by_age.emplace_back(p->last, id);
  std::sort(by_age.begin(), by_age.end());
  for (size_t i = 0; i < by_age.size() / 2; ++i) {
    drop_layout(*plans_[by_age[i].second]);
    plans_.erase(by_age[i].second);
  }
}

// Launches the prologue (stage 0) or the epilogue (stage 1) of a run.
void Runner::enqueue_run_kernel(int stage, CUstream stream, const int64_t* host, size_t words,
                                uint64_t slots, void* block, bool after_kernel, bool continues) {
  struct {
    CudaHeader header;
    RunParams run;
  } argument{};
  argument.header.status = state_ + 64;
  argument.header.scratch = continues ? state_ : nullptr;
  auto address = [](const void* p) { return static_cast<Address>(reinterpret_cast<intptr_t>(p)); };
  RunParams& p = argument.run;
  p.host_slots = address(host);
  p.slot_words = static_cast<int64_t>(words);
  p.slot_mask = static_cast<int64_t>(slots) - 1;
  p.block = address(block) + static_cast<int64_t>(kBlockHeader * 8);
  p.slots_used = address(block ? block : state_ + 8);
  p.runs = address(state_);
  p.records = address(records_);
  p.record_mask = static_cast<int64_t>(kRecords) - 1;
  launch(run_kernels_->function(static_cast<size_t>(stage), 0), 1,
         stage == 0 ? kPrologueThreads : kEpilogueThreads, 0, stream, &argument,
         after_kernel && early_wanted(gpu_));
}

void Runner::run_plain(std::span<const LaunchItem> items, const RunArgs& args, uint64_t run,
                       std::span<const CUevent> marks) {
  size_t words = parameter_words(args), tables = 0;
  for (const LaunchItem& i : items) tables += executable(i).table_words();
  Slot& slot = slots_[run % kAhead];
  if (slot.words < words + tables || !slot.device) {
    // Nothing uses this slot any more: its last run is over.
    size_t size = std::max<size_t>((words + tables) * 2, 512);
    if (slot.host) driver().mem_free_host(slot.host);
    if (slot.device) gpu_.deallocate(slot.device, (kBlockHeader + slot.words) * 8);
    slot = {};
    slot.host = pinned(size);
    slot.device = gpu_.allocate((kBlockHeader + size) * 8);
    if (!slot.device)
      throw Error(ErrorKind::OutOfMemory, "cuda",
                  "the GPU has no room for the parameters of a run");
    slot.words = size;
  }
  int64_t* table = write_parameters(slot.host, args);
  for (const LaunchItem& i : items) {
    executable(i).write_table(table, reinterpret_cast<const int64_t*>(i.buffers));
    table += executable(i).table_words();
  }

  started_ = run;
  gpu_.started_run = run;
  gpu_.loose_work = false;
  const int64_t* parameters = static_cast<const int64_t*>(slot.device) + kBlockHeader;
  LaunchSite site;
  site.stream = gpu_.compute;
  site.header = header_at(parameters, args, state_ + 64);
  std::exception_ptr failure;
  enqueue_run_kernel(0, site.stream, slot.host, words + tables, 1, slot.device, false,
                     args.continues);
  try {
    const int64_t* at = parameters + words;
    const CUevent* mark = marks.data();
    site.after_kernel = marks.empty() && early_wanted(gpu_);
    if (!marks.empty()) check(driver().event_record(*mark++, site.stream), "recording an event");
    for (const LaunchItem& i : items) {
      site.header.scratch = i.scratch;
      site.header.table = at;
      site.pointers = reinterpret_cast<const int64_t*>(i.buffers);
      executable(i).enqueue(site);
      site.after_kernel = marks.empty() && executable(i).ends_with_kernel() && early_wanted(gpu_);
      if (!marks.empty()) check(driver().event_record(*mark++, site.stream), "recording an event");
      at += executable(i).table_words();
    }
  } catch (...) {
    failure = std::current_exception();
  }
  enqueue_run_kernel(
      1, site.stream, nullptr, 0, 1, slot.device,
      site.after_kernel);  // the run must end, or later ones would be waited for in vain
  if (failure) std::rethrow_exception(failure);
}

void Runner::run_graph(PlanState& p, std::span<const LaunchItem> items, const RunArgs& args,
                       uint64_t run) {
  Graph& g = graph_for(p, items, args);
  if (p.plain) return run_plain(items, args, run);
  int64_t* at = write_parameters(p.host_slots + (p.graph_runs % kAhead) * p.slot_words, args);
  for (size_t k = 0; k < p.moving.size(); ++k)
    if (p.moving[k] >= 0) at[p.moving[k]] = reinterpret_cast<int64_t>(p.addresses[k]);
  std::atomic_thread_fence(std::memory_order_release);
  check(driver().graph_launch(g.exec, gpu_.compute), "launching a graph");
  ++p.graph_runs;
  started_ = run;
  gpu_.started_run = run;
  gpu_.loose_work = false;
}

Runner::Graph& Runner::graph_for(PlanState& p, std::span<const LaunchItem> items,
                                 const RunArgs& args) {
  std::vector<void*> key;
  for (size_t k = 0; k < p.addresses.size(); ++k)
    if (p.fixed[k]) key.push_back(p.addresses[k]);
  for (Graph& g : p.graphs)
    if (g.key == key) return g;
  if (p.graphs.size() >= kMostGraphs) drop_graphs(p);
  Graph& g = p.graphs.emplace_back();
  g.key = std::move(key);
  if (++p.captured > kMostCaptures) {
    p.plain = true;
    drop_layout(p);
    static Graph none;
    return none;
  }
  try {
    capture(p, g, items, args);
  } catch (const Error& e) {
    // Launched kernel by kernel instead, which raises what is really wrong, if anything is.
    if (env::debug("plan"))
      std::fprintf(stderr, "[ingot plan] a plan cannot be captured: %s\n", e.what());
    p.plain = true;
    drop_layout(p);
    static Graph none;
    return none;
  }
  ++captures_;
  return g;
}

// Captures the launches of a run on several streams, each waiting for what it depends on and for
// nothing else.
void Runner::enqueue_beside(const PlanState& p, std::span<const LaunchItem> items,
                            const int64_t* pointers, LaunchSite site, const int64_t* table,
                            bool beside) {
  const int lanes = lanes_ =
      beside && env::flag("INGOT_CUDA_OVERLAP") && items.size() <= kMostBeside
          ? static_cast<int>(std::size(gpu_.captured))
          : 1;
  Overlap overlap(lanes);
  while (marks_.size() < items.size() + 1)
    check(driver().event_create(&marks_.emplace_back(), CU_EVENT_DISABLE_TIMING),
          "making an event");
  CUevent begun = marks_[items.size()];
  check(driver().event_record(begun, gpu_.captured[0]), "recording an event");
  for (int l = 1; l < lanes; ++l)
    check(driver().stream_wait_event(gpu_.captured[l], begun, 0), "ordering the streams");
  std::vector<Overlap::Access> accesses;
  std::vector<char> kernel_before(static_cast<size_t>(lanes));
  kernel_before[0] = 1;
  const void* const* address = p.addresses.data();
  for (size_t n = 0; n < items.size(); ++n) {
    CudaExecutable& exe = executable(items[n]);
    accesses.clear();
    for (int b = 0; b < items[n].n_buffers; ++b)
      accesses.push_back({reinterpret_cast<uintptr_t>(address[b]),
                          exe.touches.buffers[static_cast<size_t>(b)].bytes,
                          exe.touches.buffers[static_cast<size_t>(b)].written});
    accesses.push_back({reinterpret_cast<uintptr_t>(items[n].scratch), exe.scratch_bytes, true});
    Overlap::Place place = overlap.add(accesses, exe.touches.may_fail, exe.touches.predicated);
    site.stream = gpu_.captured[place.lane];
    for (int other : place.after)
      check(driver().stream_wait_event(site.stream, marks_[static_cast<size_t>(other)], 0),
            "ordering the streams");
    site.header.scratch = items[n].scratch;
    site.header.table = table;
    site.pointers = pointers;
    // Early only after the kernel that directly precedes it: for the first one of lane 0, the run's
    // prologue.
    size_t lane = static_cast<size_t>(place.lane);
    site.after_kernel = place.after.empty() && kernel_before[lane] && early_wanted(gpu_);
    exe.enqueue(site);
    kernel_before[lane] = exe.ends_with_kernel();
    check(driver().event_record(marks_[n], site.stream), "recording an event");
    table += exe.table_words();
    pointers += items[n].n_buffers + 1;
    address += items[n].n_buffers + 1;
  }
  for (int l = 1; l < lanes; ++l) {
    int last = overlap.tails()[static_cast<size_t>(l)];
    CUevent end = last < 0 ? begun : marks_[static_cast<size_t>(last)];
    if (last < 0) check(driver().event_record(end, gpu_.captured[l]), "recording an event");
    check(driver().stream_wait_event(gpu_.captured[0], end, 0), "ordering the streams");
  }
}

void Runner::capture(PlanState& p, Graph& g, std::span<const LaunchItem> items,
                     const RunArgs& args) {
  const int64_t* parameters = static_cast<const int64_t*>(p.block) + kBlockHeader;
  const int64_t* table_of_moving = parameters + parameter_words(args);
  std::vector<int64_t> pointers(p.addresses.size());
  for (size_t k = 0; k < pointers.size(); ++k)
    pointers[k] =
        p.moving[k] < 0
            ? reinterpret_cast<int64_t>(p.addresses[k])
            : static_cast<int64_t>(reinterpret_cast<uint64_t>(table_of_moving + p.moving[k]) |
                                   kIndirectPointer);
  // The tables of this graph's kernels never change: they are copied once.
  std::vector<int64_t> tables;
  const int64_t* at = pointers.data();
  for (const LaunchItem& i : items) {
    size_t first = tables.size();
    tables.resize(first + executable(i).table_words());
    executable(i).write_table(tables.data() + first, at);
    at += i.n_buffers + 1;
  }
  if (!tables.empty()) {
    g.table_bytes = tables.size() * 8;
    g.tables = gpu_.allocate(g.table_bytes);
    if (!g.tables)
      throw Error(ErrorKind::OutOfMemory, "cuda", "the GPU has no room for the tables of a graph");
    gpu_.staging.to_device(gpu_.compute, g.tables, tables.data(), g.table_bytes);
  }

  check(driver().stream_begin_capture(gpu_.captured[0], CU_STREAM_CAPTURE_MODE_RELAXED),
        "beginning a capture");
  CUgraph graph = nullptr;
  std::exception_ptr failure;
  try {
    LaunchSite site;
    site.stream = gpu_.captured[0];
    site.capturing = true;
    site.header = header_at(parameters, args, state_ + 64);
    enqueue_run_kernel(0, site.stream, p.host_slots, p.slot_words, kAhead, p.block, false,
                       args.continues);
    enqueue_beside(p, items, pointers.data(), site, static_cast<const int64_t*>(g.tables),
                   args.captured);
    bool after_kernel =
        !items.empty() && lanes_ == 1 && executable(items.back()).ends_with_kernel();
    enqueue_run_kernel(1, site.stream, nullptr, 0, 1, p.block, after_kernel);
  } catch (...) {
    failure = std::current_exception();
  }
  CUresult ended = driver().stream_end_capture(gpu_.captured[0], &graph);
  if (!failure && ended == CUDA_SUCCESS) ended = driver().graph_instantiate(&g.exec, graph, 0);
  if (graph) driver().graph_destroy(graph);
  if (failure || ended != CUDA_SUCCESS) {
    if (g.tables) gpu_.deallocate(g.tables, g.table_bytes);
    if (failure) std::rethrow_exception(failure);
    check(ended, "making a graph");
  }
  driver().graph_upload(g.exec, gpu_.compute);
}

// Reads the records of runs that have ended, in order.
void Runner::collect() {
  while (finished_ < started_) {
    int64_t* record = records_ + (finished_ % kRecords) * kRecordWords;
    if (static_cast<uint64_t>(
            std::atomic_ref<int64_t>(record[0]).load(std::memory_order_acquire)) != finished_ + 1)
      return;
    ++finished_;
    if (!record[1]) continue;
    RunStatus& s = failed_[finished_];
    std::memcpy(&s.code, &record[1], 4);
    std::memcpy(&s.site, reinterpret_cast<char*>(&record[1]) + 4, 4);
    s.value = record[2];
    s.extent = record[3];
    record[1] = 0;  // runs that went well write their number alone
  }
}

void Runner::wait_for(uint64_t run) {
  using Clock = std::chrono::steady_clock;
  auto begin = Clock::now(), asked = begin;
  for (;;) {
    collect();
    if (finished_ >= run) return;
    auto now = Clock::now();
    if (now - begin < std::chrono::microseconds(200)) continue;
    if (now - asked > std::chrono::milliseconds(5)) {
      asked = now;
      CUresult r = driver().stream_query(gpu_.compute);
      if (r == CUDA_SUCCESS) {
        collect();
        if (finished_ >= run) return;
        throw Error(ErrorKind::Internal, "cuda",
                    "the GPU is idle but run " + std::to_string(run) + " left no record");
      }
      if (r != CUDA_ERROR_NOT_READY) check(r, "a run on the GPU");
    }
    if (now - begin < std::chrono::milliseconds(2))
      sched_yield();
    else
      usleep(50);
  }
}

bool Runner::poll(uint64_t ticket, bool wait, RunStatus& status) {
  if (wait)
    wait_for(ticket);
  else
    collect();
  if (finished_ < ticket) return false;
  status = {};
  if (auto at = failed_.find(ticket); at != failed_.end()) {
    status = at->second;
    failed_.erase(at);
  }
  return true;
}

}  // namespace ingot::cuda
