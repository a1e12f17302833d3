// The functions behind Codecs, one file per library. They throw CodecError.
#pragma once
#include <algorithm>
#include <cstdlib>

#include "io/codecs.h"

namespace ingot::io {

/// More pixels than this are refused before memory is taken for them: 8 million, and 32 for each byte of the
/// file, unless the file is trusted (see Budget).
inline int64_t max_pixels(size_t file_bytes) {
  constexpr int64_t kMost = int64_t{1} << 27, kBase = int64_t{1} << 23, kEach = 32;
  if (std::getenv("INGOT_READ_LIMIT") || file_bytes > static_cast<size_t>(kMost)) return kMost;
  return std::min(kMost, kBase + kEach * static_cast<int64_t>(file_bytes));
}

void inflate_exactly(Bytes data, uint8_t* out, size_t size);
std::vector<uint8_t> gunzip_all(Bytes data, size_t limit);
size_t gunzip_first(Bytes data, uint8_t* out, size_t size);
void gunzip_after(Bytes data, size_t skip, uint8_t* out, size_t size);
std::vector<uint8_t> gzip_all(Bytes data);
Image png_decode(Bytes data, int channels);
std::vector<uint8_t> png_encode(const Image& image);
Image jpeg_decode(Bytes data, int channels, const ChooseWindow& choose, Window* window);
std::vector<uint8_t> jpeg_encode(const Image& image, int quality);

}  // namespace ingot::io
