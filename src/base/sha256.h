// SHA-256 (FIPS 180-4): collision-resistant names for content. For short texts such as kernel
// sources; not optimised for speed.
#pragma once
#include <string>
#include <string_view>

namespace ingot {

/// 64 hexadecimal digits.
std::string sha256(std::string_view bytes);

}  // namespace ingot
