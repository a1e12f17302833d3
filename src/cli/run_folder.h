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
  /// Makes the folder and locks it. `now`: this run's identity, as identity_of() returns it. Throws
  /// Failure(kConflict) when another process works there; when there is a run and neither --resume
  /// nor --fresh was given; or when the run to be resumed differs and --accept-changes was not
  /// given.
  RunFolder(const std::string& path, const nlohmann::json& now, const TrainArgs& args);
  /// For the user: what was moved aside, what was accepted.
  const std::vector<std::string>& messages() const { return messages_; }
  /// Records this run's identity: recipe.json for users and run.json for the next --resume.
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

/// What must not change between two parts of one run: the settings that determine the result, the
/// data, and the values of --from, --freeze and --lora.
nlohmann::json identity_of(const Recipe& recipe, const TrainArgs& args);

}  // namespace ingot::cli
