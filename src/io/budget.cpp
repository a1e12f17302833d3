// See budget.h.
#include "io/budget.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <limits>
#include <string_view>

#include "io/file.h"

namespace ingot::io {
namespace {

constexpr size_t kBase = size_t{64} << 20, kEach = 32;

// "8GiB", "500MiB" or a number of bytes; 0 when it is none of these.
size_t read_limit() {
  const char* text = std::getenv("INGOT_READ_LIMIT");
  if (!text) return 0;
  const std::string_view s = text;
  size_t n = 0;
  auto [end, error] = std::from_chars(s.data(), s.data() + s.size(), n);
  if (error != std::errc()) return 0;
  const std::string_view unit(end, static_cast<size_t>(s.data() + s.size() - end));
  const int shift = unit.empty() ? 0 : unit == "MiB" ? 20 : unit == "GiB" ? 30 : unit == "TiB" ? 40 : -1;
  if (shift < 0) return 0;
  return n > std::numeric_limits<size_t>::max() >> shift ? std::numeric_limits<size_t>::max() / 2
                                                         : n << shift;
}

}  // namespace

Budget::Budget(size_t file_bytes, const char* op, const std::string& path, const SourceLoc& loc)
    : file_(file_bytes), op_(op), path_(path), loc_(loc) {
  constexpr size_t kMost = std::numeric_limits<size_t>::max() / 4;
  left_ =
      std::max(kBase + kEach * std::min(file_bytes, (kMost - kBase) / kEach), std::min(read_limit(), kMost));
}

void Budget::fail() const {
  fail_io(op_, path_,
          "would take far more memory than its " + std::to_string(file_) + " bytes give reason for", loc_,
          "if you trust the file, allow more: INGOT_READ_LIMIT=8GiB");
}

}  // namespace ingot::io
