// What libingot_codecs.so exports.
#include "ingot/version.h"
#include "io/codecs/codecs_impl.h"

namespace ingot::io {
namespace {

struct Table : Codecs {
  void inflate(Bytes data, uint8_t* out, size_t size) override { inflate_exactly(data, out, size); }
  std::vector<uint8_t> gunzip(Bytes data, size_t limit) override { return gunzip_all(data, limit); }
  size_t gunzip_head(Bytes data, uint8_t* out, size_t size) override {
    return gunzip_first(data, out, size);
  }
  void gunzip_rest(Bytes data, size_t skip, uint8_t* out, size_t size) override {
    gunzip_after(data, skip, out, size);
  }
  std::vector<uint8_t> gzip(Bytes data) override { return gzip_all(data); }
  Image decode_png(Bytes data, int channels, int64_t max_pixels) override {
    return png_decode(data, channels, max_pixels);
  }
  Image decode_jpeg(Bytes data, int channels, int64_t max_pixels, const ChooseWindow& choose,
                    Window* window) override {
    return jpeg_decode(data, channels, max_pixels, choose, window);
  }
  std::vector<uint8_t> encode_png(const Image& image) override { return png_encode(image); }
  std::vector<uint8_t> encode_jpeg(const Image& image, int quality) override {
    return jpeg_encode(image, quality);
  }
};

}  // namespace
}  // namespace ingot::io

extern "C" ingot::io::Codecs* ingot_codecs() {
  static ingot::io::Table table;
  return &table;
}
extern "C" const char* ingot_codecs_version() { return INGOT_VERSION_STRING; }
