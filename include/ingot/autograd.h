// Gradients: grad(), gradient modes, hooks, custom functions, checkpoints and the tools that check
// gradients. Tensor::backward() and its kin are declared with Tensor.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "ingot/tensor.h"

namespace ingot {

/// While one lives, this thread records operations without history: `{ NoGrad guard; p -= 0.1 *
/// p.grad(); }`.
class NoGrad {
 public:
  NoGrad();
  ~NoGrad();
  NoGrad(const NoGrad&) = delete;
  NoGrad& operator=(const NoGrad&) = delete;

 private:
  bool previous_;
};

/// The opposite, for a piece of code inside a NoGrad.
class EnableGrad {
 public:
  EnableGrad();
  ~EnableGrad();
  EnableGrad(const EnableGrad&) = delete;
  EnableGrad& operator=(const EnableGrad&) = delete;

 private:
  bool previous_;
};

/// Are operations of this thread recorded with history?
bool is_grad_enabled();
/// Sets whether they are, from now on; NoGrad and EnableGrad set it for a block.
void set_grad_enabled(bool on);

/// Runs fn without history and returns what it returns.
template <class F>
auto no_grad(F&& fn) {
  NoGrad guard;
  return fn();
}

/// Gradients of the sum of `outputs` with respect to each input, weighted by grad_outputs (one per
/// output; may be left out, or undefined, for outputs of one element). retain_graph is create_graph
/// unless given. With create_graph the gradients have a history themselves. Nothing is added to
/// .grad(). Throws Error(Autograd): an output without history, an input that does not require a
/// gradient or was not used (with allow_unused its gradient is an undefined Tensor), a graph freed
/// earlier, a missing grad_output; Error(Shape) for a grad_output of another shape.
std::vector<Tensor> grad(const std::vector<Tensor>& outputs, const std::vector<Tensor>& inputs,
                         const std::vector<Tensor>& grad_outputs = {},
                         std::optional<bool> retain_graph = {}, bool create_graph = false,
                         bool allow_unused = false, SourceLoc loc = SourceLoc::current());

/// Removes a hook.
class HookHandle {
 public:
  HookHandle() = default;
  explicit HookHandle(std::function<void()> remove) : remove_(std::move(remove)) {}
  /// Does nothing the second time.
  void remove();

 private:
  std::function<void()> remove_;
};

/// Calls hook with the gradient of t, once it is complete, in every backward; the hook may return
/// another gradient of the same shape, type and device (another: Error(Autograd) in backward), or
/// an undefined Tensor. Throws Error(Autograd) when t does not require a gradient.
HookHandle register_hook(const Tensor& t, std::function<Tensor(const Tensor&)> hook,
                         SourceLoc loc = SourceLoc::current());

/// Shared by the two halves of a custom function.
class FunctionContext {
 public:
  /// Keeps tensors for the backward half: inputs, results, or others. Inputs and results may be
  /// differentiated through again.
  void save_for_backward(std::vector<Tensor> tensors);
  const std::vector<Tensor>& saved() const { return saved_; }
  /// Does input i need a gradient? A backward may leave the others undefined.
  bool needs_input_grad(size_t i) const { return i < needs_.size() && needs_[i]; }

 private:
  friend class CustomFunction;
  friend struct FunctionBackward;
  std::vector<Tensor> saved_;
  std::vector<bool> needs_;
};

/// An operation with a custom gradient:
///   CustomFunction clipped([](auto& ctx, auto& in) { ctx.save_for_backward(in); return
///   std::vector{in[0].clamp(0, 1)}; },
///                          [](auto& ctx, auto& g) { return std::vector{g[0]}; });
///   Tensor y = clipped({x})[0];
/// forward runs without history. backward gets a gradient per output (zeros where none arrived) and
/// returns one per input, an undefined Tensor for none; it is recorded like anything else, so it
/// may be differentiated again.
class CustomFunction {
 public:
  using Forward = std::function<std::vector<Tensor>(FunctionContext&, const std::vector<Tensor>&)>;
  using Backward = std::function<std::vector<Tensor>(FunctionContext&, const std::vector<Tensor>&)>;
  CustomFunction(Forward forward, Backward backward, std::string name = "custom");
  /// Throws Error(Autograd) when forward returns an undefined Tensor. In backward: Error(Autograd)
  /// for a wrong number of gradients, Error(Shape) for a gradient that does not fit its input.
  std::vector<Tensor> operator()(const std::vector<Tensor>& inputs,
                                 SourceLoc loc = SourceLoc::current()) const;

 private:
  Forward forward_;
  Backward backward_;
  std::string name_;
};

/// Runs fn(inputs) without keeping intermediates; backward computes them again from the inputs,
/// after the gradient has arrived. Random numbers and amp::Autocast are the same both times, and
/// running statistics (batch norm's) are updated once. fn must compute the same both times; it is
/// kept until then, so it must own what it captures, or refer only to what lives that long.
std::vector<Tensor> checkpoint(
    const std::function<std::vector<Tensor>(const std::vector<Tensor>&)>& fn,
    const std::vector<Tensor>& inputs, SourceLoc loc = SourceLoc::current());
/// The same for one result.
Tensor checkpoint(const std::function<Tensor(const std::vector<Tensor>&)>& fn,
                  const std::vector<Tensor>& inputs, SourceLoc loc = SourceLoc::current());

/// What gradcheck found: the worst element, described.
struct GradCheck {
  bool ok = true;
  double worst =
      0;  ///< largest |analytic - numeric| / (atol + rtol * |numeric|); at most 1 is good
  std::string report;  ///< "input 0 [1, 2], output 0 [3]: analytic 0.5, numeric 0.25 ..."
  explicit operator bool() const { return ok; }
};

using GradFunction = std::function<std::vector<Tensor>(const std::vector<Tensor>&)>;

/// Compares the gradients of fn at inputs (float64; those that require gradients are varied) with
/// central differences. Throws Error(DType) for inputs that require gradients and are not float64.
GradCheck gradcheck(const GradFunction& fn, const std::vector<Tensor>& inputs, double eps = 1e-6,
                    double atol = 1e-5, double rtol = 1e-3, SourceLoc loc = SourceLoc::current());
/// The same for the gradients of the gradients.
GradCheck gradgradcheck(const GradFunction& fn, const std::vector<Tensor>& inputs,
                        double eps = 1e-6, double atol = 1e-5, double rtol = 1e-3,
                        SourceLoc loc = SourceLoc::current());

}  // namespace ingot
