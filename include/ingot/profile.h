// How long each launch takes, and what memory a run would take: what `ingot profile` and `ingot
// plan` show. Not part of ingot.h; programs that measure include it.
//
//   Profile profile;
//   step();
//   for (const LaunchTime& l : profile.launches()) std::cout << l.us << " us  " << l.ops << "\n";
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "ingot/device.h"
#include "ingot/source.h"

namespace ingot {

/// One kernel, library call or copy between devices.
struct LaunchTime {
  std::string ops;   ///< as explain() names it
  std::string kind;  ///< "map", "reduce", "row", "library" or "copy"
  Device device;
  double start_us = 0;                   ///< since the profile began
  double us = 0;                         ///< it took
  double bytes = 0, flops = 0;           ///< read and written; of the arithmetic
  double memory_us = 0, compute_us = 0;  ///< what these take at the device's rates
};

/// While one lives every launch of every thread is timed: runs go launch by launch, on GPUs with
/// events between them and without CUDA graphs, and the host waits for each run. Results are the
/// same. Throws Error(State) when another lives.
class Profile {
 public:
  explicit Profile(SourceLoc loc = SourceLoc::current());
  ~Profile();
  Profile(const Profile&) = delete;
  Profile& operator=(const Profile&) = delete;
  /// In the order they were launched.
  std::vector<LaunchTime> launches() const;
  /// Microseconds since it began, on the clock of LaunchTime::start_us.
  double now_us() const;
};

/// What a device's arena holds at the peak of a run. The parts add up to
/// `bytes`.
struct ArenaUse {
  double bytes = 0;
  double weights = 0;      ///< parameters in another type or layout
  double activations = 0;  ///< computed by the forward pass and still needed by the backward pass
  double gradients = 0;    ///< computed by the backward pass, of parameters and of activations
  double workspace = 0;    ///< of library calls, and gaps between the others
  /// The activations by the layer that computed them, in the order of their first: "h.0.mlp.c_fc";
  /// "" for what no module computed.
  std::vector<std::pair<std::string, double>> layers;
};

/// While one lives, what this thread runs is planned, compiled and given its memory, but nothing is
/// launched: values are whatever that memory held. device.memory().peak then says what a step
/// takes, quickly. How `ingot plan` works.
class DryRun {
 public:
  DryRun();
  ~DryRun();
  DryRun(const DryRun&) = delete;
  DryRun& operator=(const DryRun&) = delete;
  /// Of the run with the largest arena on the device since the outermost one began.
  ArenaUse largest(const Device& device) const;

 private:
  bool previous_;
};

/// Frees what the device's plans share and no run needs now (MemoryStats::arena); the next run
/// allocates it again. For use before measuring: memory().peak then ignores earlier runs.
void empty_cache(const Device& device);

}  // namespace ingot
