#include "profile.h"

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <map>
#include <memory>

#include "bottleneck.h"
#include "cli.h"
#include "files.h"
#include "rates.h"

namespace ingot::cli {
namespace fs = std::filesystem;
using nlohmann::json;

namespace {

// A span of the host's time, on the profile's clock.
struct Span {
  const char* name;
  double start_us, us;
};

struct Measured {
  double step = 0, data = 0;         // seconds a step, unobserved
  int profiled = 0;                  // steps that were timed launch by launch
  std::vector<LaunchTime> launches;  // of those
  std::vector<Span> host;
  bool with_data = true;
};

// Launches of one kernel.
struct Sum {
  std::string kind;
  int count = 0;
  double us = 0, floor_us = 0, bytes = 0, flops = 0, memory_us = 0, compute_us = 0;
};

// Batches one after the other, epoch after epoch; zeros where the data is missing.
class Batches {
 public:
  explicit Batches(Task& task, bool with_data) : task_(task) {
    if (!with_data) {
      const std::vector<Tensor> e = task.example(task.recipe().integer("batch"));
      eval(e);
      still_ = std::make_unique<data::Batch>(e);
    }
  }
  /// Calls `use` with this many batches and the seconds each took to arrive.
  void each(int count, const std::function<void(const data::Batch&, double)>& use) {
    if (still_) {
      for (int i = 0; i < count; ++i) use(*still_, 0);
      return;
    }
    while (count > 0) {
      double asked = now();
      for (const auto& b : task_.train()) {
        use(b, now() - asked);
        if (--count == 0) return;
        asked = now();
      }
    }
  }

 private:
  Task& task_;
  std::unique_ptr<data::Batch> still_;
};

Measured observe(Task& task, bool with_data, int steps) {
  const auto optimizer = make_optimizer(task.recipe(), task.model().parameters());
  Batches batches(task, with_data);
  Measured m;
  m.with_data = with_data;
  batches.each(3, [&](const data::Batch& b, double) { train_step(task, *optimizer, b); });
  task.device().synchronize();
  double start = 0;
  // The first batch of an iteration waits for the loader's threads to start and is not counted.
  int counted = -1;
  batches.each(steps + 1, [&](const data::Batch& b, double waited) {
    if (++counted > 0) m.data += waited;
    train_step(task, *optimizer, b);
    if (counted == 0) task.device().synchronize(), start = now();
  });
  task.device().synchronize();
  m.step = (now() - start) / steps;
  m.data /= steps;
  m.profiled = std::min(steps, 5);
  const Profile profile;
  batches.each(m.profiled, [&](const data::Batch& b, double waited) {
    const double begin = profile.now_us();
    m.host.push_back({"wait for data", begin - 1e6 * waited, 1e6 * waited});
    eval(train_step(task, *optimizer, b));
    m.host.push_back({"step", begin, profile.now_us() - begin});
  });
  m.launches = profile.launches();
  return m;
}

std::vector<std::pair<std::string, Sum>> by_kernel(const std::vector<LaunchTime>& launches) {
  std::map<std::string, Sum> sums;
  for (const LaunchTime& l : launches) {
    Sum& s = sums[l.ops];
    s.kind = l.kind, ++s.count, s.us += l.us, s.bytes += l.bytes, s.flops += l.flops;
    s.floor_us += std::max(l.memory_us, l.compute_us), s.memory_us += l.memory_us,
        s.compute_us += l.compute_us;
  }
  std::vector<std::pair<std::string, Sum>> list(sums.begin(), sums.end());
  std::stable_sort(list.begin(), list.end(),
                   [](const auto& a, const auto& b) { return a.second.us > b.second.us; });
  return list;
}

void write_trace(const std::string& file, const Task& task, const Measured& m) {
  json events = json::array();
  auto name = [&](int tid, const std::string& what) {
    events.push_back({{"ph", "M"},
                      {"pid", 1},
                      {"tid", tid},
                      {"name", "thread_name"},
                      {"args", {{"name", what}}}});
  };
  events.push_back({{"ph", "M"},
                    {"pid", 1},
                    {"name", "process_name"},
                    {"args", {{"name", "ingot " + task.recipe().name()}}}});
  name(1, "host"), name(2, task.device().name());
  for (const Span& s : m.host)
    events.push_back(
        {{"ph", "X"}, {"pid", 1}, {"tid", 1}, {"name", s.name}, {"ts", s.start_us}, {"dur", s.us}});
  for (const LaunchTime& l : m.launches)
    events.push_back({{"ph", "X"},
                      {"pid", 1},
                      {"tid", 2},
                      {"cat", l.kind},
                      {"name", l.ops},
                      {"ts", l.start_us},
                      {"dur", l.us},
                      {"args",
                       {{"bytes", l.bytes},
                        {"flops", l.flops},
                        {"limit_us", std::max(l.memory_us, l.compute_us)},
                        {"bound", l.memory_us >= l.compute_us ? "memory" : "compute"}}}});
  std::error_code e;
  if (fs::path(file).has_parent_path()) fs::create_directories(fs::path(file).parent_path(), e);
  write_file(file, json_text({{"traceEvents", events}, {"displayTimeUnit", "ms"}}) + "\n");
}

std::string shortened(const std::string& text, size_t most) {
  return text.size() <= most ? text : text.substr(0, most - 3) + "...";
}

void print(const Task& task, const Measured& m, const Rates& rates, const Shares& s, int top,
           const std::string& file) {
  const auto kernels = by_kernel(m.launches);
  double all = 0;
  for (const auto& k : kernels) all += k.second.us;
  std::cout << format("%s on %s: a step of %lld takes %s; its %zu launches, timed one by one, %s\n",
                      printable(task.recipe().name()).c_str(), task.device().name().c_str(),
                      static_cast<long long>(task.recipe().integer("batch")),
                      time_text(m.step).c_str(),
                      m.launches.size() / static_cast<size_t>(m.profiled),
                      time_text(1e-6 * all / m.profiled).c_str());
  std::cout << format("limits: %sFLOP/s in matrix products, %sB/s of memory (measured)\n\n",
                      rate_text(rates.matmul).c_str(), rate_text(rates.memory).c_str());
  Table t({"share", "a step", "launches", "of the limit", "bound", "kind", "ops"});
  for (size_t i = 0; i < kernels.size() && i < static_cast<size_t>(top); ++i) {
    const auto& [ops, k] = kernels[i];
    // Data that stays in the caches is read faster than memory allows.
    const double limit = k.floor_us / k.us;
    t.row({format("%.1f %%", 100 * k.us / all), time_text(1e-6 * k.us / m.profiled),
           std::to_string(k.count / m.profiled),
           limit > 1 ? "100 % (caches)" : format("%.0f %%", 100 * limit),
           k.memory_us >= k.compute_us ? "memory" : "compute", k.kind, shortened(ops, 70)});
  }
  const auto [name, share] = s.largest();
  std::cout << t.text()
            << format(
                   "\nbound by %s: compute %.0f %%, memory %.0f %%, host %.0f %%, data %.0f %% of "
                   "the step%s\n",
                   name.c_str(), 100 * s.compute, 100 * s.memory, 100 * s.host, 100 * s.data,
                   m.with_data ? "" : " (the data is missing: zeros were used)")
            << "  " << file << "   the launches of " << m.profiled
            << " steps, for https://ui.perfetto.dev or chrome://tracing\n";
}

}  // namespace

int run_profile(const ProfileArgs& args) {
  const Recipe recipe = effective_recipe(args.recipe);
  const Device device = device_of(recipe);
  std::unique_ptr<Task> task;
  bool with_data = true;
  try {
    task = std::make_unique<Task>(recipe, device, true);
  } catch (const Failure& e) {
    if (e.code() != kNoData) throw;
    with_data = false;
    task = std::make_unique<Task>(recipe, device, false);
  }
  Measured m = observe(*task, with_data, args.steps);
  const Rates rates = known_rates(device, 0.4, true);
  m.launches = with_rates(m.launches, device, rates);
  DeviceTime one = device_time(m.launches);
  one.memory /= m.profiled, one.compute /= m.profiled;
  const Shares s = shares_of(m.step, one, m.data);
  const std::string file = args.trace.empty() ? "out/" + recipe.name() + "-trace.json" : args.trace;
  write_trace(file, *task, m);
  if (!args.json) {
    print(*task, m, rates, s, args.top, file);
    return kOk;
  }
  json kernels = json::array();
  for (const auto& [ops, k] : by_kernel(m.launches))
    kernels.push_back({{"ops", ops},
                       {"kind", k.kind},
                       {"launches", k.count / m.profiled},
                       {"seconds", 1e-6 * k.us / m.profiled},
                       {"of_limit", k.floor_us / k.us},
                       {"bound", k.memory_us >= k.compute_us ? "memory" : "compute"}});
  std::cout
      << json_text(
             {{"step_seconds", m.step},
              {"bound", s.largest().first},
              {"shares",
               {{"data", s.data}, {"host", s.host}, {"memory", s.memory}, {"compute", s.compute}}},
              {"with_data", with_data},
              {"trace", file},
              {"kernels", kernels}},
             2)
      << "\n";
  return kOk;
}

}  // namespace ingot::cli
