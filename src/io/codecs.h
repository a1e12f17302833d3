// Compressed data and images: zlib, libpng and libjpeg-turbo behind one interface. They are in a
// separate library, libingot_codecs.so, which is loaded at first use: the core neither needs them
// nor pays for them at start.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "ingot/source.h"
#include "io/budget.h"

namespace ingot::io {

using Bytes = std::span<const uint8_t>;

/// Rows of pixels with interleaved channels: 1 (grey) or 3 (red, green, blue).
struct Image {
  int width = 0, height = 0, channels = 0;
  std::unique_ptr<uint8_t[]> pixels;

  Image() = default;
  Image(int w, int h, int c)
      : width(w),
        height(h),
        channels(c),
        pixels(
            new uint8_t[static_cast<size_t>(w) * static_cast<size_t>(h) * static_cast<size_t>(c)]) {
  }
  size_t row_bytes() const { return static_cast<size_t>(width) * static_cast<size_t>(channels); }
  const uint8_t* row(int y) const { return pixels.get() + static_cast<size_t>(y) * row_bytes(); }
  uint8_t* row(int y) { return pixels.get() + static_cast<size_t>(y) * row_bytes(); }
};

/// A part of an image in its own pixels, and the size it will be scaled to (0: unscaled).
struct Window {
  double x = 0, y = 0, width = 0, height = 0;
  int want_width = 0, want_height = 0;
};
/// Called once the size of the image is known.
using ChooseWindow = std::function<Window(int width, int height)>;

/// What is wrong with the data; the caller adds the file's name.
struct CodecError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

class Codecs {
 public:
  virtual ~Codecs() = default;
  /// Raw deflate data that must unpack to exactly `size` bytes.
  virtual void inflate(Bytes data, uint8_t* out, size_t size) = 0;
  /// A gzip file, of one or several members, of at most `limit` bytes unpacked.
  virtual std::vector<uint8_t> gunzip(Bytes data, size_t limit) = 0;
  /// Only the first `size` bytes of it, or as many as there are.
  virtual size_t gunzip_head(Bytes data, uint8_t* out, size_t size) = 0;
  /// The data after the first `skip` bytes, which must be exactly `size` bytes.
  virtual void gunzip_rest(Bytes data, size_t skip, uint8_t* out, size_t size) = 0;
  virtual std::vector<uint8_t> gzip(Bytes data) = 0;
  /// channels: 1 or 3 converts, 0 keeps grey and converts everything else to colour. More than
  /// `max_pixels` are refused before memory is taken for them.
  virtual Image decode_png(Bytes data, int channels, int64_t max_pixels) = 0;
  /// Decodes only what `choose` requests, at a half, a quarter or an eighth of the size where the
  /// part is scaled down that much anyway. `window` becomes the requested part in the pixels of the
  /// result. Without `choose`: all of it.
  virtual Image decode_jpeg(Bytes data, int channels, int64_t max_pixels,
                            const ChooseWindow& choose, Window* window) = 0;
  virtual std::vector<uint8_t> encode_png(const Image& image) = 0;
  virtual std::vector<uint8_t> encode_jpeg(const Image& image, int quality) = 0;
};

/// Loads the library; Error(Unsupported), saying how to get it, when it is not installed.
Codecs& codecs(const char* op, const SourceLoc& loc);

/// PNG or JPEG, detected by the first bytes; Error(Io) naming the file.
Image decode_image(Bytes data, int channels, const ChooseWindow& choose, Window* window,
                   const char* op, const std::string& path, const SourceLoc& loc);
bool is_gzip(Bytes data);
/// The data itself, or its unpacked content when it is gzip; `own` keeps the result alive. It is
/// charged to the budget.
Bytes unpacked(Bytes data, Budget& budget, std::vector<uint8_t>& own, const char* op,
               const std::string& path, const SourceLoc& loc);

}  // namespace ingot::io

/// What the library exports.
extern "C" ingot::io::Codecs* ingot_codecs();
extern "C" const char* ingot_codecs_version();
