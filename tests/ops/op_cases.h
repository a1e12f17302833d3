// The list of op cases. A case is a function of tensors and what its inputs look like.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "support/op_check.h"

namespace ingot::check {

/// Element types a case runs with (inputs with a fixed type keep it).
enum class Types { Float, Number, Int, Any, Bits };

struct In {
  Dims shape;
  double lo = -2, hi = 2;
  std::optional<DType> fixed{};  ///< this type always, no gradient
};

struct Case {
  std::string name;
  std::vector<In> inputs;
  Function fn;
  Types types = Types::Float;
  bool grad = true;
  double slack = 1;  ///< times the usual tolerance: long sums
};

const std::vector<Case>& cases();
void add_index_cases(std::vector<Case>& c);

// The other families.
void add_elementwise(std::vector<Case>& c);
void add_arrangement(std::vector<Case>& c);
void add_algebra(std::vector<Case>& c);

}  // namespace ingot::check
