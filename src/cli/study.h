// What a recipe costs, before it is trained: ingot plan, explain, bench.
#pragma once
#include <string>
#include <vector>

#include "train.h"

namespace ingot::cli {

/// Bytes of one training step, exactly as its plans place them.
struct Footprint {
  double parameters = 0, gradients = 0, optimizer = 0, batch = 0,
         rest = 0;  ///< rest: activations and workspace
  double peak = 0;
};
/// Records and plans two steps on a device that computes nothing; needs no GPU and no data.
Footprint footprint(const Recipe& recipe);

struct PlanArgs {
  TrainArgs recipe;
  std::string gpu, memory;
  bool json = false;
};
/// kNoRoom when it does not fit.
int run_plan(const PlanArgs& args);

/// The network, its layers, and the kernels of one step.
int run_explain(const TrainArgs& args, const std::string& rates, bool kernels);

struct BenchArgs {
  std::vector<std::string> recipes;
  std::vector<std::string> devices;
  double seconds = 3;
  bool json = false;
};
int run_bench(const BenchArgs& args);

}  // namespace ingot::cli
