// Pixels: an image on its way through the transforms, as bytes (interleaved channels) or, after
// ToTensor, as floats (one plane per channel).
#pragma once
#include <vector>

#include "data/host.h"
#include "ingot/data/transforms.h"
#include "io/codecs.h"

namespace ingot::data {

struct Pixels {
  int width = 0, height = 0, channels = 0;
  std::vector<uint8_t> bytes;  // height x width x channels
  std::vector<float> floats;   // channels x height x width
  bool is_float = false;
  // The valid part, in pixels, where a decoder returned more than was requested.
  io::Window window;
  bool has_window = false;

  size_t pixels() const { return static_cast<size_t>(width) * static_cast<size_t>(height); }
  const uint8_t* row(int y) const {
    return bytes.data() + static_cast<size_t>(y) * static_cast<size_t>(width * channels);
  }
  uint8_t* row(int y) {
    return bytes.data() + static_cast<size_t>(y) * static_cast<size_t>(width * channels);
  }
  float* plane(int c) { return floats.data() + static_cast<size_t>(c) * pixels(); }
  void to_floats();
  void to_bytes();
  Tensor tensor() const;  ///< [channels, height, width]
  static Pixels of(const Tensor& t, const SourceLoc& loc);
};

struct Transform::Impl {
  virtual ~Impl() = default;
  virtual void apply(Pixels& p, Random& r) const = 0;
  /// A first step that only needs a part of the image, or a smaller one, says so before it is
  /// decoded; apply() then finds image.window. Returns false when all of it is needed.
  virtual bool window(int width, int height, Random& r, io::Window& w) const {
    (void)width, (void)height, (void)r, (void)w;
    return false;
  }
  /// The size of the centre that this step keeps, 0 for other steps ...
  virtual int middle() const { return 0; }
  /// ... and that step fused with this one before it, computing only what it keeps. False where the
  /// two must run one after the other.
  virtual bool apply_middle(Pixels& p, int size) const {
    (void)p, (void)size;
    return false;
  }
};

/// Steps in order.
void apply_all(const std::vector<Transform>& steps, Pixels& p);

/// Of `full` results, `count` starting at `first`.
struct Results {
  int64_t full = 0;
  int first = 0, count = 0;
};

/// The part of `from` in the window, resized: each result is the average of the source under a
/// triangle, at least two pixels wide. Only the requested results are computed.
void resize(const uint8_t* from, int from_width, int from_height, int channels,
            const io::Window& part, uint8_t* to, const Results& columns, const Results& rows);
inline void resize(const uint8_t* from, int from_width, int from_height, int channels,
                   const io::Window& part, uint8_t* to, int width, int height) {
  resize(from, from_width, from_height, channels, part, to, Results{width, 0, width},
         Results{height, 0, height});
}

/// Decodes and transforms. `data` is a PNG or JPEG file.
Tensor decode_and_transform(io::Bytes data, int channels, const Transforms& transforms,
                            const std::string& path, const SourceLoc& loc);

}  // namespace ingot::data
