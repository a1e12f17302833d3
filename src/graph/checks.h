// What a value is checked for while a run computes it, and for whom: the function that the user
// called. Gather, ScatterAdd and Scatter carry one of these; they refuse an index outside [0,
// size). Other conditions are brought to that form: an index of 1 into one element (require() in
// ops/common.h).
#pragma once
#include "ingot/error.h"
#include "ingot/source.h"

namespace ingot {

enum class Check : uint8_t {
  None,  // by the op's own name
  Gather,
  IndexSelect,
  IndexAdd,
  IndexCopy,
  Embedding,
  OneHot,
  Scatter,
  ScatterAdd,
  ScatterReduce,
  Accuracy,
  // Labels
  CrossEntropy,
  NllLoss,
  // Negative indices count from the end
  Index,
  IndexPut,
  IndexFill,
  Take,
  TakeAlongDim,
  Put,
  // Conditions
  FloorDivide,
  Div,
  Remainder,
  Fmod,
  BinaryCrossEntropy,
  Bernoulli,
  NormalDeviation,
  Multinomial,
  Count_
};

/// While one lives, what this thread records is checked on behalf of that function; of several the
/// outermost.
class CheckScope {
 public:
  explicit CheckScope(Check check);
  ~CheckScope();
  CheckScope(const CheckScope&) = delete;
  CheckScope& operator=(const CheckScope&) = delete;

 private:
  Check previous_;
};
/// Of the open scope.
Check current_check();
/// The function the user called: "index_select".
const char* name_of(Check check);

/// The error of an index `value` on a dimension of this size; `op` where no function was named.
Error failed_check(Check check, const char* op, int64_t value, int64_t size, const SourceLoc& loc);

}  // namespace ingot
