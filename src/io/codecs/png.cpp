// PNG by libpng. Its errors arrive by longjmp, so no object with a destructor is created between
// setjmp and the last call of libpng.
#include <png.h>

#include <cstring>

#include "io/codecs/codecs_impl.h"

namespace ingot::io {
namespace {

struct Source {
  Bytes data;
  size_t at;
};

struct Message {
  char text[160];
};

[[noreturn]] void stop(png_structp png, const char* text) {
  auto* m = static_cast<Message*>(png_get_error_ptr(png));
  std::strncpy(m->text, text, sizeof m->text - 1);
  png_longjmp(png, 1);
}
// The library's own messages do not help the file's owner.
void on_error(png_structp png, png_const_charp text) {
  stop(png,
       std::strstr(text, "emory") ? "there is not enough memory for it" : "its data is damaged");
}
void read_bytes(png_structp png, png_bytep out, png_size_t n) {
  auto* s = static_cast<Source*>(png_get_io_ptr(png));
  if (n > s->data.size() - s->at) stop(png, "the file ends early");
  std::memcpy(out, s->data.data() + s->at, n);
  s->at += n;
}

void on_warning(png_structp, png_const_charp) {}

// Everything becomes 8 bits; palettes and small greys are expanded, alpha is dropped.
void set_conversions(png_structp png, png_infop info, int channels) {
  int type = png_get_color_type(png, info);
  if (png_get_bit_depth(png, info) == 16) png_set_strip_16(png);
  png_set_expand(png);
  if (type & PNG_COLOR_MASK_ALPHA || png_get_valid(png, info, PNG_INFO_tRNS))
    png_set_strip_alpha(png);
  bool grey = !(type & PNG_COLOR_MASK_COLOR);
  if (channels == 3 && grey) png_set_gray_to_rgb(png);
  if (channels == 1 && !grey) png_set_rgb_to_gray_fixed(png, PNG_ERROR_ACTION_NONE, 29900, 58700);
  png_set_interlace_handling(png);
  png_read_update_info(png, info);
}

// Returns false on an error, with its message; image and rows belong to the caller, who outlives
// the jump.
bool decode(Source& source, int channels, int64_t max_pixels, Image& image,
            std::vector<png_bytep>& rows, Message& message) {
  png_structp png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &message, on_error, on_warning);
  if (!png) return false;
  png_infop info = png_create_info_struct(png);
  if (!info || setjmp(png_jmpbuf(png))) {
    png_destroy_read_struct(&png, &info, nullptr);
    return false;
  }
  png_set_read_fn(png, &source, read_bytes);
  png_set_user_limits(png, 1 << 20, 1 << 20);
  png_set_chunk_malloc_max(png, 1 << 22);
  png_set_chunk_cache_max(png, 16);
  png_read_info(png, info);
  png_uint_32 w = png_get_image_width(png, info), h = png_get_image_height(png, info);
  if (static_cast<int64_t>(w) * h > max_pixels)
    stop(png, "it has too many pixels for a file of its size");
  set_conversions(png, info, channels);
  int c = png_get_channels(png, info);
  if ((c != 1 && c != 3) ||
      png_get_rowbytes(png, info) != static_cast<size_t>(w) * static_cast<size_t>(c))
    stop(png, "its pixels are of an unknown kind");
  image = Image(static_cast<int>(w), static_cast<int>(h), c);
  rows.resize(h);
  for (png_uint_32 y = 0; y < h; ++y) rows[y] = image.row(static_cast<int>(y));
  png_read_image(png, rows.data());
  png_read_end(png, nullptr);
  png_destroy_read_struct(&png, &info, nullptr);
  return true;
}

void append(png_structp png, png_bytep data, png_size_t n) {
  auto* out = static_cast<std::vector<uint8_t>*>(png_get_io_ptr(png));
  out->insert(out->end(), data, data + n);
}

bool encode(const Image& image, std::vector<uint8_t>& out, Message& message) {
  png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, &message, on_error, on_warning);
  if (!png) return false;
  png_infop info = png_create_info_struct(png);
  if (!info || setjmp(png_jmpbuf(png))) {
    png_destroy_write_struct(&png, &info);
    return false;
  }
  png_set_write_fn(png, &out, append, nullptr);
  png_set_user_limits(png, 1 << 20, 1 << 20);
  png_set_IHDR(png, info, static_cast<png_uint_32>(image.width),
               static_cast<png_uint_32>(image.height), 8,
               image.channels == 1 ? PNG_COLOR_TYPE_GRAY : PNG_COLOR_TYPE_RGB, PNG_INTERLACE_NONE,
               PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
  png_write_info(png, info);
  for (int y = 0; y < image.height; ++y) png_write_row(png, const_cast<png_bytep>(image.row(y)));
  png_write_end(png, info);
  png_destroy_write_struct(&png, &info);
  return true;
}

}  // namespace

Image png_decode(Bytes data, int channels, int64_t max_pixels) {
  Source source{data, 0};
  Image image;
  std::vector<png_bytep> rows;
  Message message{};
  if (!decode(source, channels, max_pixels, image, rows, message))
    throw CodecError(message.text[0] ? message.text : "libpng could not start");
  return image;
}

std::vector<uint8_t> png_encode(const Image& image) {
  std::vector<uint8_t> out;
  Message message{};
  if (!encode(image, out, message))
    throw CodecError(message.text[0] ? message.text : "libpng could not start");
  return out;
}

}  // namespace ingot::io
