// SHA-256 (FIPS 180-4): names for content that nobody can make two of. Short texts such as kernel
// sources; not made for speed.
#pragma once
#include <string>
#include <string_view>

namespace ingot {

/// 64 hexadecimal digits.
std::string sha256(std::string_view bytes);

}  // namespace ingot
