// A run's metrics in TensorBoard's format: `tensorboard --logdir out`.
#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "files.h"

namespace ingot::cli {

/// A file folder/events.out.tfevents.*: records of a length, its checksum, an Event (protocol
/// buffers), its checksum.
class EventFile {
 public:
  /// A new file. first_step > 0: a resumed run; TensorBoard then drops what older files hold for
  /// that step and later ones.
  EventFile(const std::string& folder, int64_t first_step);
  void scalars(int64_t step, const std::vector<std::pair<std::string, double>>& values);
  /// Deletes the event files of a folder, for a run that starts over.
  static void clear(const std::string& folder);

 private:
  void record(const std::string& event);
  GrowingFile out_;
};

}  // namespace ingot::cli
