// The environment variables that Ingot reads. docs/environment.md is made from the same table.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "ingot/source.h"

namespace ingot {

struct EnvironmentVariable {
  std::string name;
  std::string kind;      ///< "flag", "number", "bytes", "words" or "path"
  std::string standard;  ///< used where it is not set; "" for nothing
  std::string purpose, reader;
  std::optional<std::string> value;  ///< what it is set to now
};

/// All of them, Ingot's own first.
std::vector<EnvironmentVariable> environment_variables();
/// What one of them is set to; Error(Value) for a name that Ingot does not read.
std::optional<std::string> environment(const std::string& name,
                                       SourceLoc loc = SourceLoc::current());

}  // namespace ingot
