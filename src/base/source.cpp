// The user's line. Inside the library __FILE__ begins with ingot/src/ (the build maps it so).
#include "ingot/source.h"

#include <cstring>

namespace ingot {
namespace {

thread_local SourceLoc scope_loc;

}  // namespace

bool is_internal(const SourceLoc& loc) {
  return loc.file[0] == 'i' &&
         (std::strncmp(loc.file, "ingot/src/", 10) == 0 || std::strncmp(loc.file, "ingot/include/", 14) == 0);
}

SourceLoc user_loc(const SourceLoc& loc) {
  if (!is_internal(loc)) return loc;
  return scope_loc.line ? scope_loc : loc;
}

LocScope::LocScope(const SourceLoc& loc) : previous_(scope_loc) {
  if (!is_internal(loc)) scope_loc = loc;
}
LocScope::~LocScope() { scope_loc = previous_; }

}  // namespace ingot
