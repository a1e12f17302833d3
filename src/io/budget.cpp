// See budget.h.
#include "io/budget.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <string_view>

#include "base/env.h"
#include "io/file.h"

namespace ingot::io {
namespace {

constexpr size_t kBase = size_t{64} << 20, kEach = 32;

}  // namespace

Budget::Budget(size_t file_bytes, const char* op, const std::string& path, const SourceLoc& loc)
    : file_(file_bytes), op_(op), path_(path), loc_(loc) {
  constexpr size_t kMost = std::numeric_limits<size_t>::max() / 4;
  left_ = std::max(kBase + kEach * std::min(file_bytes, (kMost - kBase) / kEach),
                   std::min(env::bytes("INGOT_READ_LIMIT"), kMost));
}

void Budget::fail() const {
  fail_io(op_, path_,
          "would take far more memory than its " + std::to_string(file_) + " bytes justify", loc_,
          "if you trust the file, allow more: INGOT_READ_LIMIT=8GiB");
}

int64_t max_pixels(size_t file_bytes) {
  constexpr int64_t kMost = int64_t{1} << 27, kBasePixels = int64_t{1} << 23, kEachPixels = 32;
  if (env::text("INGOT_READ_LIMIT") || file_bytes > static_cast<size_t>(kMost)) return kMost;
  return std::min(kMost, kBasePixels + kEachPixels * static_cast<int64_t>(file_bytes));
}

}  // namespace ingot::io
