// Where in the user's program an operation was called. Public functions take a defaulted SourceLoc,
// evaluated at the caller's line; Ingot's own calls inside a LocScope take the scope's location
// instead.
#pragma once
#include <cstdint>

namespace ingot {

struct SourceLoc {
  const char* file = "";
  uint32_t line = 0;
  static constexpr SourceLoc current(const char* f = __builtin_FILE(),
                                     uint32_t l = __builtin_LINE()) {
    return SourceLoc{f, l};
  }
};

/// Is this a line of Ingot's own sources (its file name begins with ingot/src/ or ingot/include/)?
bool is_internal(const SourceLoc& loc);
/// loc itself, or, when loc is in Ingot's sources, the user's line that the innermost open LocScope
/// holds.
SourceLoc user_loc(const SourceLoc& loc);

/// Library code that composes other public functions opens one with the location it was given.
class LocScope {
 public:
  explicit LocScope(const SourceLoc& loc);
  ~LocScope();
  LocScope(const LocScope&) = delete;
  LocScope& operator=(const LocScope&) = delete;

 private:
  SourceLoc previous_;
};

}  // namespace ingot
