// JPEG by libjpeg-turbo. Only the requested rows and columns are decoded, and at a smaller scale
// where the image is scaled down anyway, which saves most of the work when training on large
// images. Errors arrive by longjmp, so no object with a destructor is created between setjmp and
// the last call of the library.
#include <cstdio>
#include <memory>
// jpeglib.h needs size_t and FILE.
#include <jerror.h>
#include <jpeglib.h>

#include <algorithm>
#include <cmath>
#include <csetjmp>
#include <cstdlib>
#include <cstring>

#include "io/codecs/codecs_impl.h"

namespace ingot::io {
namespace {

struct Errors {
  jpeg_error_mgr base;
  std::jmp_buf jump;
  char text[JMSG_LENGTH_MAX];
  int64_t most_work;  // pixels times scans
};

[[noreturn]] void raise(j_common_ptr c) {
  auto* e = reinterpret_cast<Errors*>(c->err);
  // The library's own messages do not help the file's owner.
  std::strcpy(e->text, c->err->msg_code == JERR_OUT_OF_MEMORY ? "there is not enough memory for it"
                                                              : "its data is damaged");
  std::longjmp(e->jump, 1);
}

// A warning means damaged data, which the library would fill with grey; only stray bytes between
// markers are harmless.
void warn(j_common_ptr c, int level) {
  if (level >= 0) return;
  int code = c->err->msg_code;
  if (code == JWRN_HIT_MARKER || code == JWRN_JPEG_EOF || code == JWRN_HUFF_BAD_CODE ||
      code == JWRN_MUST_RESYNC)
    raise(c);
}

// A progressive file may hold thousands of scans over a large image: minutes of work in a few
// bytes.
void watch(j_common_ptr c) {
  auto* e = reinterpret_cast<Errors*>(c->err);
  auto* d = reinterpret_cast<j_decompress_ptr>(c);
  if (c->is_decompressor &&
      static_cast<int64_t>(d->image_width) * d->image_height * d->input_scan_number >
          e->most_work) {
    std::strcpy(e->text, "it has too many scans");
    std::longjmp(e->jump, 1);
  }
}

void start(Errors& errors, jpeg_error_mgr*& slot) {
  slot = jpeg_std_error(&errors.base);
  errors.base.error_exit = raise;
  errors.base.emit_message = warn;
}

struct Job {
  Bytes data;
  int channels;
  int64_t max_pixels;
  const ChooseWindow* choose;
  Window window;
  Image image;
  std::unique_ptr<uint8_t[]> strip;  // row buffer: wider than the window, or CMYK
};

// The largest reduction that still leaves enough pixels.
int reduction(const Window& w) {
  int by = 1;
  if (w.want_width <= 0 || w.want_height <= 0) return by;
  while (by < 8 && w.width / (2 * by) >= w.want_width && w.height / (2 * by) >= w.want_height)
    by *= 2;
  return by;
}

// Inverted CMYK, as Adobe writes it, to RGB or grey.
void from_cmyk(const uint8_t* in, uint8_t* out, int width, int channels) {
  for (int x = 0; x < width; ++x, in += 4) {
    int r = in[0] * in[3] / 255, g = in[1] * in[3] / 255, b = in[2] * in[3] / 255;
    if (channels == 1) {
      out[x] = static_cast<uint8_t>((r * 19595 + g * 38470 + b * 7471 + 32768) >> 16);
    } else {
      out[3 * x] = static_cast<uint8_t>(r), out[3 * x + 1] = static_cast<uint8_t>(g),
              out[3 * x + 2] = static_cast<uint8_t>(b);
    }
  }
}

void read_rows(jpeg_decompress_struct& c, Job& job, bool cmyk) {
  const double sx = static_cast<double>(c.output_width) / c.image_width,
               sy = static_cast<double>(c.output_height) / c.image_height;
  Window& w = job.window;
  w.x *= sx, w.width *= sx, w.y *= sy, w.height *= sy;
  // A margin around the window, so that filters at its edge see their neighbours.
  auto low = [](double v, double margin) {
    return static_cast<int>(std::max(0.0, std::floor(v - margin)));
  };
  int x0 = low(w.x, 4), y0 = low(w.y, 4);
  int x1 =
      std::min(static_cast<int>(c.output_width), static_cast<int>(std::ceil(w.x + w.width)) + 4);
  int y1 =
      std::min(static_cast<int>(c.output_height), static_cast<int>(std::ceil(w.y + w.height)) + 4);
  JDIMENSION offset = static_cast<JDIMENSION>(x0), width = static_cast<JDIMENSION>(x1 - x0);
  if (width < c.output_width)
    jpeg_crop_scanline(&c, &offset, &width);
  else
    offset = 0;
  w.x -= offset, w.y -= y0;
  job.image = Image(static_cast<int>(width), y1 - y0, job.channels);
  if (cmyk) job.strip.reset(new uint8_t[static_cast<size_t>(width) * 4]);
  if (y0 > 0) jpeg_skip_scanlines(&c, static_cast<JDIMENSION>(y0));
  for (int y = 0; y < job.image.height; ++y) {
    JSAMPROW row = cmyk ? job.strip.get() : job.image.row(y);
    jpeg_read_scanlines(&c, &row, 1);
    if (cmyk) from_cmyk(job.strip.get(), job.image.row(y), job.image.width, job.channels);
  }
  // Rows below are not decoded: the data may end there.
}

bool decode(Job& job, Errors& errors) {
  jpeg_decompress_struct c{};
  jpeg_progress_mgr progress{};
  start(errors, c.err);
  jpeg_create_decompress(&c);
  if (setjmp(errors.jump)) {
    jpeg_destroy_decompress(&c);
    return false;
  }
  progress.progress_monitor = watch;
  c.progress = &progress;
  jpeg_mem_src(&c, job.data.data(), static_cast<unsigned long>(job.data.size()));
  errors.most_work = (int64_t{1} << 26) + 64 * static_cast<int64_t>(job.data.size());
  jpeg_read_header(&c, TRUE);
  if (static_cast<int64_t>(c.image_width) * c.image_height > job.max_pixels) {
    std::strcpy(errors.text, "it has too many pixels for a file of its size");
    std::longjmp(errors.jump, 1);
  }
  bool cmyk = c.jpeg_color_space == JCS_CMYK || c.jpeg_color_space == JCS_YCCK;
  if (job.channels == 0) job.channels = c.jpeg_color_space == JCS_GRAYSCALE ? 1 : 3;
  c.out_color_space = cmyk ? JCS_CMYK : job.channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
  job.window = {0, 0, static_cast<double>(c.image_width), static_cast<double>(c.image_height)};
  if (*job.choose)
    job.window = (*job.choose)(static_cast<int>(c.image_width), static_cast<int>(c.image_height));
  c.scale_num = 1;
  c.scale_denom = static_cast<unsigned>(reduction(job.window));
  jpeg_start_decompress(&c);
  try {
    read_rows(c, job, cmyk);
  } catch (...) {
    jpeg_destroy_decompress(&c);
    throw;
  }
  jpeg_destroy_decompress(&c);
  return true;
}

bool encode(const Image& image, int quality, unsigned char*& out, unsigned long& size,
            Errors& errors) {
  jpeg_compress_struct c{};
  start(errors, c.err);
  jpeg_create_compress(&c);
  if (setjmp(errors.jump)) {
    jpeg_destroy_compress(&c);
    return false;
  }
  jpeg_mem_dest(&c, &out, &size);
  c.image_width = static_cast<JDIMENSION>(image.width);
  c.image_height = static_cast<JDIMENSION>(image.height);
  c.input_components = image.channels;
  c.in_color_space = image.channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
  jpeg_set_defaults(&c);
  jpeg_set_quality(&c, quality, TRUE);
  jpeg_start_compress(&c, TRUE);
  for (int y = 0; y < image.height; ++y) {
    JSAMPROW row = const_cast<JSAMPROW>(image.row(y));
    jpeg_write_scanlines(&c, &row, 1);
  }
  jpeg_finish_compress(&c);
  jpeg_destroy_compress(&c);
  return true;
}

}  // namespace

Image jpeg_decode(Bytes data, int channels, int64_t max_pixels, const ChooseWindow& choose,
                  Window* window) {
  Errors errors{};
  Job job{data, channels, max_pixels, &choose, {}, {}, {}};
  if (!decode(job, errors)) throw CodecError(errors.text);
  if (window) *window = job.window;
  return std::move(job.image);
}

std::vector<uint8_t> jpeg_encode(const Image& image, int quality) {
  Errors errors{};
  unsigned char* data = nullptr;
  unsigned long size = 0;
  bool ok = encode(image, quality, data, size, errors);
  std::vector<uint8_t> out;
  if (ok) out.assign(data, data + size);
  std::free(data);
  if (!ok) throw CodecError(errors.text);
  return out;
}

}  // namespace ingot::io
