// How a loss is summed up.
#pragma once
#include "ingot/reductions.h"
#include "ops/common.h"

namespace ingot {

enum class Reduction { Mean, Sum, None };

inline Reduction parse_reduction(std::string_view word, const char* op, const SourceLoc& loc) {
  if (word == "mean") return Reduction::Mean;
  if (word == "sum") return Reduction::Sum;
  if (word == "none") return Reduction::None;
  fail(ErrorKind::Value, op, "reduction is \"" + std::string(word) + "\"", loc,
       "use \"mean\", \"sum\" or \"none\"");
}

inline Tensor reduced(const Tensor& loss, Reduction how) {
  return how == Reduction::None ? loss : how == Reduction::Sum ? loss.sum() : loss.mean();
}

}  // namespace ingot
