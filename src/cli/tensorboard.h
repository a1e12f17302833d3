// The figures of a run as TensorBoard reads them: `tensorboard --logdir out`.
#pragma once
#include <cstdint>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

namespace ingot::cli {

/// A file folder/events.out.tfevents.*: records of a length, its checksum, an Event (protocol
/// buffers), its checksum.
class EventFile {
 public:
  /// A new file. first_step > 0: a run that goes on; TensorBoard forgets what older files say of
  /// that step and later ones.
  EventFile(const std::string& folder, int64_t first_step);
  void scalars(int64_t step, const std::vector<std::pair<std::string, double>>& values);
  /// Deletes the event files of a folder: of a run that begins anew.
  static void clear(const std::string& folder);

 private:
  void record(const std::string& event);
  std::ofstream out_;
};

}  // namespace ingot::cli
