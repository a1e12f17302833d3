// Checkpoint: everything a training run needs to resume bit for bit, in one file, that survives
// whatever happens to the program.
//
//   Checkpoint ckpt("runs/fashion", model, opt, train);
//   for (int epoch = ckpt.resume(); epoch < 5; ++epoch) {
//     for (auto [images, labels] : train) ...
//     ckpt.save(epoch + 1);
//   }
#pragma once
#include <concepts>
#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "ingot/amp.h"
#include "ingot/data/loader.h"
#include "ingot/nn/module.h"
#include "ingot/optim.h"
#include "ingot/random.h"
#include "ingot/state.h"

namespace ingot {

/// What a Checkpoint saves: modules, optimisers, schedules, scalers, averages, loaders, generators,
/// and anything of your own with these two.
template <class T>
concept HasState = requires(T& t, const StateDict& d) {
  { t.state_dict() } -> std::convertible_to<StateDict>;
  t.load_state_dict(d);
};

struct CheckpointOptions {
  int keep = 3;                ///< files kept, the newest ones; 0: all
  bool asynchronous = false;   ///< save() copies to the host and returns; a thread writes
  bool handle_signals = true;  ///< SIGTERM and Ctrl-C save and exit; see below
  bool fresh = false;  ///< resume() restores nothing and returns 0, whatever files there are
};

/// The folder of a checkpoint, with the line that names it.
struct CheckpointFolder {
  std::string path;
  SourceLoc loc;
  CheckpointFolder(const char* p, SourceLoc l = SourceLoc::current())
      : path(p), loc(l) {}  // NOLINT
  CheckpointFolder(std::string p, SourceLoc l = SourceLoc::current())
      : path(std::move(p)), loc(l) {}  // NOLINT
};

/// Files folder/ckpt-000001.safetensors, ... with the tensors of each part ("model.fc.weight",
/// "optimizer.state.0"), its other values, the default generator and the number given to save() as
/// metadata, and a checksum over all of it. A file is written to a temporary name, synced and then
/// renamed: a program killed at any moment, or a disk that fills up, leaves the earlier files
/// intact. No file is ever overwritten, and only intact files of this run are removed (see
/// `keep`): files of another run, or files that cannot be read, stay.
///
/// Signals: SIGTERM or SIGINT (Ctrl-C) is recorded; between two batches of a loader that is one
/// of the parts, in save() or in save_every(), the program saves and exits with status 128 + the
/// signal's number (143, 130). A second one ends it at once, as usual. A signal that the program
/// handles itself, or ignores, is left alone.
///
/// The parts are used until the checkpoint is gone. One program per folder: folder/.lock is held
/// while it lives.
class Checkpoint {
 public:
  template <class... Parts>
  requires(sizeof...(Parts) > 0 &&
           ((HasState<Parts> ||
             std::same_as<std::remove_const_t<Parts>,
                          Generator>)&&...)) explicit Checkpoint(const std::string& folder,
                                                                 Parts&... parts)
      : Checkpoint(folder, CheckpointOptions{}, parts...) {}
  /// Throws Error(Value) for a negative `keep`, Error(Io) when the folder cannot be made or listed,
  /// Error(State), naming process and machine, when another program uses it.
  template <class... Parts>
  requires(sizeof...(Parts) > 0 &&
           ((HasState<Parts> || std::same_as<std::remove_const_t<Parts>, Generator>)&&...))
      Checkpoint(const CheckpointFolder& folder, const CheckpointOptions& options,
                 Parts&... parts) {
    open(folder, options);
    (add(parts), ...);
  }
  /// Waits for what is being written.
  ~Checkpoint();
  Checkpoint(const Checkpoint&) = delete;
  Checkpoint& operator=(const Checkpoint&) = delete;

  /// Restores the newest intact file and returns the number it was saved under; 0 when there is no
  /// file. A damaged file is reported on stderr and skipped; when all are, Error(Io). Throws
  /// Error(State) when a file belongs to other parts, tensors of another shape or type, or other
  /// data. A resume() that throws changes nothing.
  int64_t resume(SourceLoc loc = SourceLoc::current());
  /// Saves under a number of yours, such as the epochs done: what resume() will return. Saves that
  /// signals request in the middle of an epoch count on from it by the loader's epochs. Throws
  /// Error(Io) when the file cannot be written, io::DiskFull when there is no room; then all files
  /// are unchanged, and training can continue.
  void save(int64_t number, SourceLoc loc = SourceLoc::current());
  /// For loops that count steps: saves when `step` is a multiple of `every`, or when a signal
  /// requests it; returns whether it did.
  bool save_every(int64_t step, int64_t every, SourceLoc loc = SourceLoc::current());
  /// Waits for an asynchronous save; throws what went wrong with it. save() does so first.
  void wait(SourceLoc loc = SourceLoc::current());

  /// The files there are, oldest first.
  std::vector<std::string> files() const;
  /// What resume() had to say: damaged files, another tuning file.
  const std::vector<std::string>& messages() const;

 private:
  struct State;
  void open(const CheckpointFolder& folder, const CheckpointOptions& options);
  using Load = std::function<void(const StateDict&, const SourceLoc&)>;
  void add_part(const char* kind, std::function<StateDict()> get, Load set);
  void add_loader(data::DataLoader& loader);
  template <class T>
  void add(T& part) {
    if constexpr (std::same_as<std::remove_const_t<T>, Generator>) {
      const Generator g = part;
      add_part(
          "generator", [g] { return generator_state(g); },
          [g](const StateDict& d, const SourceLoc& loc) { load_generator(g, d, loc); });
    } else {
      constexpr const char* kind = std::derived_from<T, nn::Module>           ? "model"
                                   : std::derived_from<T, optim::Optimizer>   ? "optimizer"
                                   : std::derived_from<T, optim::LRScheduler> ? "schedule"
                                   : std::derived_from<T, amp::GradScaler>    ? "scaler"
                                   : std::derived_from<T, data::DataLoader>   ? "loader"
                                   : std::derived_from<T, optim::EMA>         ? "ema"
                                                                              : "part";
      add_part(
          kind, [&part] { return part.state_dict(); },
          [&part](const StateDict& d, const SourceLoc& loc) {
            // With the user's line, where the part takes one.
            if constexpr (std::derived_from<T, nn::Module>)
              part.load_state_dict(d, true, loc);
            else if constexpr (requires { part.load_state_dict(d, loc); })
              part.load_state_dict(d, loc);
            else
              part.load_state_dict(d);
          });
      if constexpr (std::derived_from<T, data::DataLoader>) add_loader(part);
    }
  }
  static StateDict generator_state(const Generator& g);
  static void load_generator(const Generator& g, const StateDict& d, const SourceLoc& loc);
  std::shared_ptr<State> s_;  // of this one alone
};

}  // namespace ingot
