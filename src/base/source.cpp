// The user's line. Inside the library __FILE__ begins with ingot/src/ (the build maps it so), or,
// where a compiler cache made the path relative to a folder of the build, with ingot/../src/.
#include "ingot/source.h"

#include <cstring>

#include "base/thread.h"

namespace ingot {
namespace {

INGOT_THREAD_LOCAL SourceLoc scope_loc;

}  // namespace

bool is_internal(const SourceLoc& loc) {
  if (loc.file[0] != 'i' || loc.file[1] != 'n' || std::strncmp(loc.file, "ingot/", 6) != 0)
    return false;
  const char* rest = loc.file + 6;
  while (rest[0] == '.' && rest[1] == '.' && rest[2] == '/') rest += 3;
  if (rest[0] == 's') return rest[1] == 'r' && rest[2] == 'c' && rest[3] == '/';
  return std::strncmp(rest, "include/", 8) == 0;
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
