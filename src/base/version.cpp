#include "ingot/version.h"

namespace ingot {

const char* version() { return INGOT_VERSION_STRING; }

}  // namespace ingot
