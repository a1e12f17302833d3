// capture(fn): the fastest way to repeat a step. The first call with inputs of some shapes records,
// compiles and runs; later calls bind the new inputs and launch, without recording anything.
#pragma once
#include <functional>
#include <memory>
#include <vector>

#include "ingot/tensor.h"

namespace ingot {

struct Plan;

/// A function whose runs are kept. Calling it with inputs of shapes, types and devices seen before
/// repeats those runs. What fn may do: anything whose control flow does not depend on values. State
/// that changes from call to call must be updated in place (optimisers do); learning rates are read
/// again, random numbers continue. Reading a value inside (item(), printing) throws Error(State).
class Captured {
 public:
  using Function = std::function<std::vector<Tensor>(const std::vector<Tensor>&)>;
  explicit Captured(Function fn);
  ~Captured();
  Captured(Captured&&) noexcept;
  Captured& operator=(Captured&&) noexcept;
  std::vector<Tensor> operator()(const std::vector<Tensor>& inputs,
                                 SourceLoc loc = SourceLoc::current());

 private:
  struct Variant;
  std::vector<Tensor> first_call(const std::vector<Tensor>& inputs, const SourceLoc& loc);
  std::vector<Tensor> replay(Variant& v, const std::vector<std::shared_ptr<Plan>>& plans,
                             const std::vector<Tensor>& inputs);
  Function fn_;
  std::vector<std::shared_ptr<Variant>> variants_;
};
inline Captured capture(Captured::Function fn) { return Captured(std::move(fn)); }
/// Is this thread inside the first call of a captured function?
bool is_capturing();

}  // namespace ingot
