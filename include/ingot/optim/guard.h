// NanGuard: a step whose loss or gradients are not finite is not taken. The verdict is made on the
// device, in the step's own plan; a healthy run has no additional waits.
#pragma once
#include <memory>
#include <string>

#include "ingot/optim/optimizer.h"

namespace ingot::optim {

enum class NonFinite {
  Stop,  ///< nothing is updated any more, and an Error(Value) is thrown: by step() on a CPU,
         ///< elsewhere where the program next waits
  Skip,  ///< the step is skipped; training continues
};

struct NanGuardOptions {
  NonFinite policy = NonFinite::Stop;
  /// Keep what each step computed (its structure, not its values), so that the first op with a bad
  /// result can be named. Costs some host time per step, and the batch is kept until the next step;
  /// on an asynchronous device the batches of the last steps (up to 64 and 256 MB, at least 4)
  /// until the program waits.
  bool name_op = true;
};

///   optim::NanGuard guard(opt);
///   ...
///   loss.backward();
///   guard.step(loss);       // in place of opt.step()
/// The message names the step, whether loss or gradients failed, and, found by computing the step
/// again op by op, the first op that produced infinity or NaN from finite operands, its line and
/// its layer. It must not outlive its optimiser.
class NanGuard {
 public:
  explicit NanGuard(Optimizer& optimizer, const NanGuardOptions& options = {},
                    SourceLoc loc = SourceLoc::current());
  ~NanGuard();
  NanGuard(const NanGuard&) = delete;
  NanGuard& operator=(const NanGuard&) = delete;

  /// The optimiser's step, if loss and the norm of all gradients are finite.
  void step(const Tensor& loss, bool keep_gradients = false, SourceLoc loc = SourceLoc::current());
  /// Steps that were not taken. Waits for the device, as report() does.
  int64_t skipped(SourceLoc loc = SourceLoc::current());
  /// What went wrong in the first of them; "" when there was none.
  std::string report(SourceLoc loc = SourceLoc::current());

 private:
  struct State;
  std::shared_ptr<State> s_;
};

}  // namespace ingot::optim
