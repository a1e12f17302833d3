// A trace's plan: found in the cache, or compiled and kept.
#include <atomic>
#include <chrono>
#include <cstdio>
#include <memory>

#include "base/env.h"
#include "compile/describe.h"
#include "compile/executor.h"
#include "compile/numbers.h"
#include "compile/plan_cache.h"
#include "ingot/runtime.h"

namespace ingot {
namespace {

std::atomic<int64_t> compiled_plans{0}, plan_runs{0};

}  // namespace

PlanStats plan_stats() { return {compiled_plans.load(), plan_runs.load()}; }
void count_run() { ++plan_runs; }

std::shared_ptr<Plan> plan_for(Trace& t) {
  if (auto found = find_plan(t.key)) return found;
  if (make_arguments(t))
    if (auto found = find_plan(t.key)) return found;
  if (env::debug("graph")) std::fputs(dump(std::span<Node* const>(t.nodes)).c_str(), stderr);
  auto begin = std::chrono::steady_clock::now();
  CompileOptions o;
  o.fuse = fusion_enabled();
  o.tf32 = tf32_allowed();
  o.donated = t.donated;
  std::shared_ptr<Plan> plan = compile_plan(make_graph(t), o);
  plan->key = t.key;
  static std::atomic<uint64_t> next_id{1};
  plan->id = next_id++;
  ++compiled_plans;
  keep_plan(plan);
  if (env::debug("plan")) {
    double ms =
        std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
    const PlanCacheInfo kept = plan_cache_info();
    std::fprintf(
        stderr,
        "[ingot plan] new plan: %zu nodes, %zu leaves, %zu numbers that change -> %zu steps "
        "in %.2f ms, %.1f KiB (%lld plans hold %.1f of %.0f MiB); %s\n",
        t.nodes.size(), t.leaves.size(), t.argument_of.size(), plan->steps.size(), ms,
        static_cast<double>(plan->bytes) / 1024, static_cast<long long>(kept.plans),
        static_cast<double>(kept.bytes) / (1 << 20), static_cast<double>(kept.limit) / (1 << 20),
        what_differs(t.key).c_str());
  }
  if (env::debug("fuse") || env::debug("kernels") || env::debug("memory"))
    std::fputs(describe_plan(*plan, t,
                             {.kernels = env::debug("kernels"),
                              .memory = env::debug("memory"),
                              .why = env::debug("kernels")})
                   .c_str(),
               stderr);
  return plan;
}

}  // namespace ingot
