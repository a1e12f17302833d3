// The version of Ingot: the macros give the version compiled against, version() the one in
// use.
#pragma once

#define INGOT_VERSION_MAJOR 0
#define INGOT_VERSION_MINOR 1
#define INGOT_VERSION_PATCH 0
#define INGOT_VERSION_STRING "0.1.0"

namespace ingot {

// The version of the library in use, such as "0.1.0".
const char* version();

}  // namespace ingot
