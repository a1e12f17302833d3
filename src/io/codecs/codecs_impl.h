// The functions behind Codecs, one file per library. They throw CodecError.
#pragma once
#include "io/codecs.h"

namespace ingot::io {

/// More pixels than this are refused before memory is taken for them.
inline constexpr int64_t kMaxPixels = int64_t{1} << 27;

void inflate_exactly(Bytes data, uint8_t* out, size_t size);
std::vector<uint8_t> gunzip_all(Bytes data, size_t limit);
std::vector<uint8_t> gzip_all(Bytes data);
Image png_decode(Bytes data, int channels);
std::vector<uint8_t> png_encode(const Image& image);
Image jpeg_decode(Bytes data, int channels, const ChooseWindow& choose, Window* window);
std::vector<uint8_t> jpeg_encode(const Image& image, int quality);

}  // namespace ingot::io
