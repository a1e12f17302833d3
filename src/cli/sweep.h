// ingot sweep: trains a recipe with varied settings and ranks them.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "train.h"

namespace ingot::cli {

struct SweepArgs {
  TrainArgs recipe;  ///< its sets may name several values: lr=1e-4..1e-2:log, width=128,256
  int64_t trials = 0, seed = 1;
  bool json = false, no_stop = false;
};
int run_sweep(const SweepArgs& args);

/// A setting that is tried with several values: those of a list, or any in a range.
struct Choice {
  std::string key;
  std::vector<nlohmann::json> list;
  double low = 0, high = 0;
  bool log = false, whole = false;
  bool is_list() const { return !list.empty(); }
  /// The value at u in [0, 1).
  nlohmann::json at(double u) const;
  /// "lr=1e-4..1e-2:log"; nullopt-like empty key when the text names one value only. Throws
  /// Failure(kUsage).
  static Choice parse(const std::string& assignment);
};

struct Trial {
  int64_t number = 0;  ///< from 1
  std::map<std::string, nlohmann::json> values;
  std::string state;  ///< "", "done", "stopped", "failed"
  std::string why;
  double loss = 0, accuracy = 0, seconds = 0, part = 0;  ///< fraction of the steps that were run
  std::vector<double> tenths;  ///< the mean loss of each tenth of the steps
  bool ended() const { return !state.empty(); }
};

/// The best first: finished trials, then stopped ones, then failed ones.
std::vector<const Trial*> ranked(const std::vector<Trial>& trials, bool by_accuracy);
/// The page with the charts, and a link to the report of each trial.
std::string sweep_page(const std::string& name, const std::vector<Choice>& choices,
                       const std::vector<Trial>& trials, bool by_accuracy,
                       const std::string& best_command);
/// "trial-003".
std::string trial_folder(const Trial& trial);
/// A value as --set takes it.
std::string value_text(const nlohmann::json& value);

}  // namespace ingot::cli
