// ingot train: one recipe from the first step to the report.
#pragma once
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "recipe.h"
#include "task.h"

namespace ingot::cli {

struct TrainArgs {
  std::string recipe, device, out, from, freeze, amp, memory;
  std::vector<std::string> sets;
  int64_t epochs = 0, batch = 0, lora = 0;
  double lr = 0;
  bool resume = false, quiet = false, report = true;
  bool fresh = false;           ///< an older run in the folder is moved aside
  bool accept_changes = false;  ///< resume although settings or data have changed
  bool json = false;            ///< the result as JSON, and nothing else on stdout
  bool silent = false;          ///< nothing on stdout but the bar with `label`
  std::string label;            ///< before the progress of a silent run: "trial 3/10"
};

/// One line of metrics.jsonl. Fields that a line does not have are NaN.
struct Point {
  int64_t step = 0;
  double epoch = 0, loss = 0, lr = 0, rate = 0, memory = 0;
  double test_loss = 0, test_accuracy = 0, seconds = 0;
};

/// The history of a run, which the report draws.
struct History {
  std::vector<Point> train, test;
  Evaluation last;
  double seconds = 0;    ///< of training alone
  double peak = 0;       ///< bytes on the device, tests included
  double per_epoch = 1;  ///< steps
  int64_t steps = 0;
};

/// The recipe with the command line's changes.
Recipe effective_recipe(const TrainArgs& args);
Device device_of(const Recipe& recipe);
std::unique_ptr<optim::Optimizer> make_optimizer(const Recipe& recipe,
                                                 const std::vector<Tensor>& parameters);
std::unique_ptr<optim::LRScheduler> make_schedule(const Recipe& recipe, optim::Optimizer& optimizer,
                                                  int64_t steps);
/// Forward, backward and update on one batch; returns the loss, already computed.
Tensor train_step(Task& task, optim::Optimizer& optimizer, const data::Batch& batch);

/// Called after every step with its loss, which need not be read; returning false ends the
/// training.
using Watcher = std::function<bool(int64_t step, int64_t total, const Tensor& loss)>;

struct TrainResult {
  Evaluation last;
  double seconds = 0;  ///< of training alone
  int64_t steps = 0, total = 0;
  bool stopped = false;  ///< by the watcher
  std::string device, folder;
  double epochs = 0, peak = 0;
  int64_t parameters = 0;
};
TrainResult train(const TrainArgs& args, const Watcher& watcher = {});
int run_train(const TrainArgs& args);

/// A trained network as `ingot train` wrote it: a run's folder or a weights file.
struct Trained {
  std::unique_ptr<Task> task;
  std::string file;
};
/// Throws Failure when it is missing, damaged, or not written by this program.
Trained load_trained(const std::string& run, const std::string& device, bool with_data);

}  // namespace ingot::cli
