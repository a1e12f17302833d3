// What a recipe costs before it is trained: ingot plan, explain, bench.
#pragma once
#include <string>
#include <vector>

#include "cli.h"
#include "train.h"

namespace ingot::cli {

/// Bytes of one training step, exactly as its plans place them.
struct Footprint {
  double parameters = 0, optimizer = 0;
  double batch = 0;      ///< batches: the current one and those that the loader has ready
  double data = 0;       ///< of a data set that is kept on the device (the CPU) completely
  double converted = 0;  ///< parameters in another type or layout
  double activations = 0, gradients = 0;
  double workspace = 0;  ///< of library calls, small results, gaps
  double peak = 0;
  std::vector<std::pair<std::string, double>> layers;  ///< activations by layer
};
/// Plans two steps and a test on the device without computing anything; needs no data. For a GPU
/// that is not present, the null device takes its place; it does not know the memory of a GPU's
/// libraries.
Footprint footprint(const Recipe& recipe, const Device& device);

/// What is too large for the memory, and a remedy that was planned and fits. `named`: the recipe as
/// the user wrote it. Lifts the device's limit.
Failure no_room(const Recipe& recipe, const std::string& named, const OutOfMemory& error);

struct PlanArgs {
  TrainArgs recipe;
  std::string gpu, memory;
  bool json = false;
};
/// kNoRoom when it does not fit.
int run_plan(const PlanArgs& args);

struct ExplainArgs {
  TrainArgs recipe;
  std::string rates;
  bool kernels = false;
  bool why = false;
};
/// The network, its layers, and the kernels of one step.
int run_explain(const ExplainArgs& args);

struct BenchArgs {
  std::vector<std::string> recipes;
  std::vector<std::string> devices;
  double seconds = 3;
  bool json = false;
};
int run_bench(const BenchArgs& args);

}  // namespace ingot::cli
