// Small programs, one for each part of the library, that are made to run out of memory.
#pragma once
#include <vector>

namespace ingot::test {

struct FaultProgram {
  const char* name;
  std::vector<double> (*run)();  // the same numbers every time
};
const std::vector<FaultProgram>& fault_programs();

}  // namespace ingot::test
