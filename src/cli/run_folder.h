// The folder of a run: one process at a time, and never two runs in one.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "files.h"
#include "train.h"

namespace ingot::cli {

class RunFolder {
 public:
  /// Makes the folder and locks it. `now`: what this run is, as identity_of() says it. Throws
  /// Failure(kConflict): another process works there; there is a run and neither --resume nor
  /// --fresh was said; the run that is to be resumed is another one and --accept-changes was not
  /// said.
  RunFolder(const std::string& path, const nlohmann::json& now, const TrainArgs& args);
  /// For the user: what was moved aside, what was accepted.
  const std::vector<std::string>& messages() const { return messages_; }
  /// Writes down what this run is: recipe.json for users and run.json for the next --resume.
  void write_down(const Recipe& recipe) const;

 private:
  void refuse_overwriting() const;
  void move_aside();
  void compare(bool accept);
  nlohmann::json known() const;
  std::string path_;
  nlohmann::json now_;
  std::unique_ptr<FolderLock> lock_;
  std::vector<std::string> messages_;
};

/// What must not change between two parts of one run: the settings that decide the result, the
/// data, and what --from, --freeze and --lora said.
nlohmann::json identity_of(const Recipe& recipe, const TrainArgs& args);

}  // namespace ingot::cli
