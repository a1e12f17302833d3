// Picture: pixels on their way through the transforms, as bytes (rows of pixels, channels together)
// or, after ToTensor, as floats (channels apart).
#pragma once
#include <vector>

#include "data/host.h"
#include "ingot/data/transforms.h"
#include "io/codecs.h"

namespace ingot::data {

struct Picture {
  int width = 0, height = 0, channels = 0;
  std::vector<uint8_t> bytes;  // height x width x channels
  std::vector<float> floats;   // channels x height x width
  bool is_float = false;
  // The part of the bytes that counts, in pixels: where a decoder gave more than was asked for.
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
  static Picture of(const Tensor& t, const SourceLoc& loc);
};

struct Transform::Impl {
  virtual ~Impl() = default;
  virtual void apply(Picture& p, Random& r) const = 0;
  /// A first step that only needs a part of the picture, or a smaller one, says so before it is
  /// decoded; apply() then finds picture.window. Returns false when the whole is needed.
  virtual bool window(int width, int height, Random& r, io::Window& w) const {
    (void)width, (void)height, (void)r, (void)w;
    return false;
  }
  /// The size of the middle that this step keeps, 0 when it is another step ...
  virtual int middle() const { return 0; }
  /// ... and that step together with this one before it, which makes no more than it keeps. False
  /// where the two must be done one after the other.
  virtual bool apply_middle(Picture& p, int size) const {
    (void)p, (void)size;
    return false;
  }
};

/// Steps in order.
void apply_all(const std::vector<Transform>& steps, Picture& p);

/// Of `full` results those from `first` on.
struct Results {
  int64_t full = 0;
  int first = 0, count = 0;
};

/// The part of `from` in the window, brought to a size: each result is the average of the source
/// under a triangle, at least two pixels wide. Only the results that are asked for are made.
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
