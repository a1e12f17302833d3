// The functions behind Codecs, one file per library. They throw CodecError.
#pragma once
#include "io/codecs.h"

namespace ingot::io {

void inflate_exactly(Bytes data, uint8_t* out, size_t size);
std::vector<uint8_t> gunzip_all(Bytes data, size_t limit);
size_t gunzip_first(Bytes data, uint8_t* out, size_t size);
void gunzip_after(Bytes data, size_t skip, uint8_t* out, size_t size);
std::vector<uint8_t> gzip_all(Bytes data);
Image png_decode(Bytes data, int channels, int64_t max_pixels);
std::vector<uint8_t> png_encode(const Image& image);
Image jpeg_decode(Bytes data, int channels, int64_t max_pixels, const ChooseWindow& choose,
                  Window* window);
std::vector<uint8_t> jpeg_encode(const Image& image, int quality);

}  // namespace ingot::io
