// Training in 16-bit floats. Autocast computes matrix products in a 16-bit type while parameters
// stay float32; with float16, GradScaler keeps small gradients from underflowing: it scales the
// loss up; a step whose gradients overflow is skipped and the scale lowered. Scale and verdict stay
// on the device: no step waits for the host.
#pragma once
#include <memory>
#include <vector>

#include "ingot/optim.h"

namespace ingot::amp {

/// While one lives, on this thread: matmul, linear and attention cast float32 operands to `dtype`
/// and return it; softmax, norms and losses compute and return float32; everything else uses its
/// operands' types. Parameters are not changed.
///   { amp::Autocast scope(bfloat16); loss = cross_entropy(model(x), target); }
///   loss.backward();
/// With enabled = false it disables an outer one. Throws Error(DType) unless the type is bfloat16
/// or float16.
class Autocast {
 public:
  explicit Autocast(DType dtype = bfloat16, bool enabled = true,
                    SourceLoc loc = SourceLoc::current());
  ~Autocast();
  Autocast(const Autocast&) = delete;
  Autocast& operator=(const Autocast&) = delete;

 private:
  DType previous_type_;
  bool previous_on_;
};
/// Is one open on this thread?
bool is_autocast_enabled();

struct GradScalerOptions {
  double init_scale = 65536;
  double growth_factor = 2;
  double backoff_factor = 0.5;
  int growth_interval = 2000;  ///< good steps in a row before the scale grows
  bool enabled = true;         ///< false: scale() and step() do nothing special
};

/// scaler.scale(loss).backward(); scaler.step(optimiser); scaler.update();
class GradScaler {
 public:
  explicit GradScaler(const GradScalerOptions& options = {}, SourceLoc loc = SourceLoc::current());
  ~GradScaler();
  GradScaler(const GradScaler&) = delete;
  GradScaler& operator=(const GradScaler&) = delete;

  Tensor scale(const Tensor& loss, SourceLoc loc = SourceLoc::current());
  /// Divides the gradients by the scale, for clipping between backward and step. At most once per
  /// step: Error(State) otherwise.
  void unscale_(optim::Optimizer& optimizer, SourceLoc loc = SourceLoc::current());
  /// Records the optimiser's step, to be skipped if a gradient is not finite. update() runs it, and
  /// clears the gradients unless keep_gradients; those that stay are unscaled.
  void step(optim::Optimizer& optimizer, bool keep_gradients = false,
            SourceLoc loc = SourceLoc::current());
  /// Runs the recorded steps and sets the scale for the next. When the run fails nothing
  /// changes.
  void update(SourceLoc loc = SourceLoc::current());
  /// The scale now (a device value; item() waits for it).
  Tensor get_scale() const;
  /// The scale and the good steps since it last changed. Throws Error(State) between step() and
  /// update().
  StateDict state_dict(SourceLoc loc = SourceLoc::current()) const;
  void load_state_dict(const StateDict& state, SourceLoc loc = SourceLoc::current());

 private:
  struct State;
  std::shared_ptr<State> s_;
};

}  // namespace ingot::amp
