// The transforms. Each is a few lines over the bytes or floats of Pixels.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <memory>
#include <numbers>
#include <tuple>

#include "data/pixels.h"
#include "io/file.h"
#include "ops/common.h"

namespace ingot::data {

// ---- Pixels

void Pixels::to_floats() {
  if (is_float) return;
  floats.resize(bytes.size());
  size_t n = pixels(), c = static_cast<size_t>(channels);
  float table[256];
  for (int i = 0; i < 256; ++i) table[i] = static_cast<float>(i) / 255.0f;
  for (size_t k = 0; k < c; ++k) {
    float* out = floats.data() + k * n;
    const uint8_t* in = bytes.data() + k;
    for (size_t i = 0; i < n; ++i) out[i] = table[in[i * c]];
  }
  bytes.clear();
  is_float = true;
}

void Pixels::to_bytes() {
  if (!is_float) return;
  bytes.resize(floats.size());
  size_t n = pixels(), c = static_cast<size_t>(channels);
  for (size_t k = 0; k < c; ++k)
    for (size_t i = 0; i < n; ++i)
      bytes[i * c + k] =
          static_cast<uint8_t>(std::clamp(floats[k * n + i] * 255 + 0.5f, 0.0f, 255.0f));
  floats.clear();
  is_float = false;
}

Tensor Pixels::tensor() const {
  Dims shape{channels, height, width};
  if (is_float)
    return make_tensor(float32, shape, [&](void* out) {
      std::memcpy(out, floats.data(), floats.size() * sizeof(float));
    });
  return make_tensor(uint8, shape, [&](void* out) {
    size_t n = pixels(), c = static_cast<size_t>(channels);
    for (size_t k = 0; k < c; ++k)
      for (size_t i = 0; i < n; ++i) static_cast<uint8_t*>(out)[k * n + i] = bytes[i * c + k];
  });
}

Pixels Pixels::of(const Tensor& t, const SourceLoc& loc) {
  if (t.dim(loc) != 3 || (t.size(0) != 1 && t.size(0) != 3) || t.numel() == 0)
    fail(ErrorKind::Shape, "transforms", "an image is [1 or 3, height, width], not " + describe(t),
         loc);
  if (t.dtype() != uint8 && t.dtype() != float32)
    fail(ErrorKind::DType, "transforms",
         "an image is uint8, or float32 in [0, 1], not " + describe(t), loc);
  Pixels p;
  p.channels = static_cast<int>(t.size(0)), p.height = static_cast<int>(t.size(1)),
  p.width = static_cast<int>(t.size(2));
  Tensor h = on_host(t);
  size_t n = static_cast<size_t>(t.numel());
  if (t.dtype() == float32) {
    p.is_float = true;
    p.floats.resize(n);
    std::memcpy(p.floats.data(), host_data(h), n * sizeof(float));
    return p;
  }
  p.bytes.resize(n);
  size_t c = static_cast<size_t>(p.channels), each = n / c;
  const uint8_t* in = static_cast<const uint8_t*>(host_data(h));
  for (size_t k = 0; k < c; ++k)
    for (size_t i = 0; i < each; ++i) p.bytes[i * c + k] = in[k * each + i];
  return p;
}

Tensor Transforms::operator()(const Tensor& image, SourceLoc where) const {
  SourceLoc loc = user_loc(where);
  LocScope scope(loc);
  Pixels p = Pixels::of(image, loc);
  apply_all(steps_, p);
  return p.tensor();
}

void apply_all(const std::vector<Transform>& steps, Pixels& p) {
  for (size_t i = 0; i < steps.size(); ++i) {
    // Of a resized image only what the following crop keeps is computed: an image of 1 x 1,000,000
    // pixels would otherwise become far larger than memory first.
    const int keep = i + 1 < steps.size() ? steps[i + 1].impl().middle() : 0;
    if (keep && steps[i].impl().apply_middle(p, keep))
      ++i;
    else
      steps[i].impl().apply(p, random());
  }
}

Tensor decode_and_transform(io::Bytes data, int channels, const Transforms& transforms,
                            const std::string& path, const SourceLoc& loc) {
  Pixels p;
  const std::vector<Transform>& steps = transforms.steps();
  // The first step may draw its random values before the image is decoded; it does not draw again.
  bool asked = false;
  io::ChooseWindow choose = [&](int w, int h) {
    io::Window window{0, 0, static_cast<double>(w), static_cast<double>(h), 0, 0};
    asked = !steps.empty() && steps[0].impl().window(w, h, random(), window);
    return window;
  };
  io::Image image = io::decode_image(data, channels, choose, &p.window, "ImageFolder", path, loc);
  p.width = image.width, p.height = image.height, p.channels = image.channels;
  p.bytes.assign(image.pixels.get(),
                 image.pixels.get() + image.row_bytes() * static_cast<size_t>(image.height));
  p.has_window = asked;
  try {
    apply_all(steps, p);
  } catch (const Error& e) {
    // An image that cannot be resized is an error of this file.
    if (e.op() != std::string("Resize")) throw;
    io::fail_io("ImageFolder", path, e.reason(), loc, e.fix());
  }
  return p.tensor();
}

namespace {

using Impl = Transform::Impl;

template <class T, class... A>
Transform make(A&&... a) {
  return Transform(std::make_shared<const T>(std::forward<A>(a)...));
}

void check_size(int size, const char* op, const SourceLoc& loc) {
  if (size < 1)
    fail(ErrorKind::Value, op, "a size is at least 1, not " + std::to_string(size), user_loc(loc));
}
void check_probability(double p, const char* op, const SourceLoc& loc) {
  if (!(p >= 0 && p <= 1))
    fail(ErrorKind::Value, op, "p is a probability, between 0 and 1, not " + text_of(p),
         user_loc(loc));
}

// ---- Sizes and parts

// Resizes a window of the image; uses what was decoded for it when it was the first step.
void resize_window(Pixels& p, io::Window w, int width, int height) {
  p.to_bytes();
  if (p.has_window) w = p.window;
  p.has_window = false;
  std::vector<uint8_t> out(static_cast<size_t>(width) * static_cast<size_t>(height) *
                           static_cast<size_t>(p.channels));
  resize(p.bytes.data(), p.width, p.height, p.channels, w, out.data(), width, height);
  p.bytes = std::move(out);
  p.width = width, p.height = height;
}

// Where the centre of `size` begins.
int crop_start(int n, int size) { return static_cast<int>(std::lround((n - size) / 2.0)); }

struct ResizeImpl : Impl {
  int height, width;  // width 0: the shorter side becomes height
  ResizeImpl(int h, int w) : height(h), width(w) {}
  std::pair<int, int> target(int w, int h) const {
    if (width) return {width, height};
    // As torchvision: the longer side is rounded down.
    auto longer = [&](int a, int b) {
      const int64_t side = std::max<int64_t>(1, static_cast<int64_t>(height) * a / b);
      return static_cast<int>(std::min(side, kMaxSide + 1));
    };
    return w <= h ? std::pair(height, longer(h, w)) : std::pair(longer(w, h), height);
  }
  bool window(int w, int h, Random&, io::Window& out) const override {
    std::tie(out.want_width, out.want_height) = target(w, h);
    return true;
  }
  std::pair<int, int> target_of(const Pixels& p) const {
    return p.has_window ? std::pair(p.window.want_width, p.window.want_height)
                        : target(p.width, p.height);
  }
  static void refuse(const Pixels& p, std::pair<int, int> to) {
    auto sides = [](int w, int h) { return std::to_string(w) + " x " + std::to_string(h); };
    fail(ErrorKind::Value, "Resize",
         "an image of " + sides(p.width, p.height) + " pixels would become one of " +
             sides(to.first, to.second),
         SourceLoc::current(), "give both sides, Resize(height, width), or crop it first");
  }
  void apply(Pixels& p, Random&) const override {
    const std::pair<int, int> to = target_of(p);
    const int64_t pixels = static_cast<int64_t>(to.first) * to.second;
    if (pixels > std::max<int64_t>(kMaxResized, static_cast<int64_t>(p.pixels())) ||
        std::max(to.first, to.second) > kMaxSide)
      refuse(p, to);
    if (!p.has_window && to == std::pair(p.width, p.height)) return;
    resize_window(p, {0, 0, static_cast<double>(p.width), static_cast<double>(p.height), 0, 0},
                  to.first, to.second);
  }
  bool apply_middle(Pixels& p, int size) const override {
    const std::pair<int, int> to = target_of(p);
    if (std::max(to.first, to.second) > kMaxSide) refuse(p, to);
    // Where the crop reaches outside, or nothing is left out, the two steps run one after the
    // other.
    if (to.first < size || to.second < size || to == std::pair(size, size)) return false;
    if (!p.has_window && to == std::pair(p.width, p.height)) return false;
    p.to_bytes();
    io::Window w{0, 0, static_cast<double>(p.width), static_cast<double>(p.height), 0, 0};
    if (p.has_window) w = p.window;
    p.has_window = false;
    std::vector<uint8_t> out(static_cast<size_t>(size) * static_cast<size_t>(size) *
                             static_cast<size_t>(p.channels));
    resize(p.bytes.data(), p.width, p.height, p.channels, w, out.data(),
           Results{to.first, crop_start(to.first, size), size},
           Results{to.second, crop_start(to.second, size), size});
    p.bytes = std::move(out);
    p.width = p.height = size;
    return true;
  }

 private:
  // The longest side allowed, and the most pixels of a result that is larger than its image.
  static constexpr int64_t kMaxSide = int64_t{1} << 30, kMaxResized = int64_t{1} << 24;
};

// The part at (x, y), which may reach outside the image, where it is zero.
void crop(Pixels& p, int x, int y, int width, int height) {
  p.to_bytes();
  size_t c = static_cast<size_t>(p.channels);
  std::vector<uint8_t> out(static_cast<size_t>(width) * static_cast<size_t>(height) * c, 0);
  int x0 = std::max(0, x), x1 = std::min(p.width, x + width);
  for (int i = std::max(0, -y); i < height && y + i < p.height && x0 < x1; ++i)
    std::memcpy(
        out.data() +
            (static_cast<size_t>(i) * static_cast<size_t>(width) + static_cast<size_t>(x0 - x)) * c,
        p.row(y + i) + static_cast<size_t>(x0) * c, static_cast<size_t>(x1 - x0) * c);
  p.bytes = std::move(out);
  p.width = width, p.height = height;
}

struct CenterCropImpl : Impl {
  int size;
  explicit CenterCropImpl(int s) : size(s) {}
  void apply(Pixels& p, Random&) const override {
    crop(p, crop_start(p.width, size), crop_start(p.height, size), size, size);
  }
  int middle() const override { return size; }
};

struct RandomCropImpl : Impl {
  int size, padding;
  RandomCropImpl(int s, int pad) : size(s), padding(pad) {}
  void apply(Pixels& p, Random& r) const override {
    int w = p.width + 2 * padding - size, h = p.height + 2 * padding - size;
    if (w < 0 || h < 0)
      fail(ErrorKind::Value, "RandomCrop",
           "an image of " + std::to_string(p.height) + " x " + std::to_string(p.width) +
               " is smaller than the crop of " + std::to_string(size),
           SourceLoc::current(), "resize first, or give a padding");
    int y = static_cast<int>(r.below(h + 1)), x = static_cast<int>(r.below(w + 1));
    crop(p, x - padding, y - padding, size, size);
  }
};

struct RandomResizedCropImpl : Impl {
  int size;
  RandomResizedCropOptions o;
  RandomResizedCropImpl(int s, const RandomResizedCropOptions& options) : size(s), o(options) {}
  io::Window choose(int width, int height, Random& r) const {
    double area = static_cast<double>(width) * height;
    for (int attempt = 0; attempt < 10; ++attempt) {
      double target = area * r.uniform(o.scale.first, o.scale.second);
      double ratio = std::exp(r.uniform(std::log(o.ratio.first), std::log(o.ratio.second)));
      int w = static_cast<int>(std::lround(std::sqrt(target * ratio))),
          h = static_cast<int>(std::lround(std::sqrt(target / ratio)));
      if (w < 1 || h < 1 || w > width || h > height) continue;
      auto y = static_cast<double>(r.below(height - h + 1)),
           x = static_cast<double>(r.below(width - w + 1));
      return {x, y, static_cast<double>(w), static_cast<double>(h), size, size};
    }
    // The centre, as close to the ratios as possible.
    double ratio = std::clamp(static_cast<double>(width) / height, o.ratio.first, o.ratio.second);
    int w = std::clamp(static_cast<int>(std::lround(height * ratio)), 1, width),
        h = std::clamp(static_cast<int>(std::lround(w / ratio)), 1, height);
    const int left = (width - w) / 2, top = (height - h) / 2;
    return {static_cast<double>(left),
            static_cast<double>(top),
            static_cast<double>(w),
            static_cast<double>(h),
            size,
            size};
  }
  bool window(int w, int h, Random& r, io::Window& out) const override {
    out = choose(w, h, r);
    return true;
  }
  void apply(Pixels& p, Random& r) const override {
    resize_window(p, p.has_window ? p.window : choose(p.width, p.height, r), size, size);
  }
};

// ---- Flips and rotations

struct FlipImpl : Impl {
  double chance;
  bool horizontal;
  FlipImpl(double p, bool h) : chance(p), horizontal(h) {}
  void apply(Pixels& p, Random& r) const override {
    if (r.uniform() >= chance) return;
    p.to_bytes();
    int c = p.channels;
    if (horizontal) {
      for (int y = 0; y < p.height; ++y) {
        uint8_t *a = p.row(y), *b = a + static_cast<std::ptrdiff_t>(p.width - 1) * c;
        for (; a < b; a += c, b -= c) std::swap_ranges(a, a + c, b);
      }
    } else {
      for (int y = 0; y < p.height / 2; ++y)
        std::swap_ranges(p.row(y), p.row(y) + static_cast<std::ptrdiff_t>(p.width) * c,
                         p.row(p.height - 1 - y));
    }
  }
};

struct RotationImpl : Impl {
  double degrees;
  explicit RotationImpl(double d) : degrees(d) {}
  void apply(Pixels& p, Random& r) const override {
    double angle = r.uniform(-degrees, degrees) * std::numbers::pi / 180, cosine = std::cos(angle),
           sine = std::sin(angle);
    p.to_bytes();
    std::vector<uint8_t> out(p.bytes.size(), 0);
    double cx = (p.width - 1) / 2.0, cy = (p.height - 1) / 2.0;
    size_t c = static_cast<size_t>(p.channels);
    for (int y = 0; y < p.height; ++y)
      for (int x = 0; x < p.width; ++x) {
        // Counter-clockwise, as in torchvision: the source of this pixel.
        double dx = x - cx, dy = y - cy;
        auto sx = static_cast<int>(std::floor(cosine * dx - sine * dy + cx + 0.5)),
             sy = static_cast<int>(std::floor(sine * dx + cosine * dy + cy + 0.5));
        if (sx < 0 || sy < 0 || sx >= p.width || sy >= p.height) continue;
        std::memcpy(out.data() + (static_cast<size_t>(y) * static_cast<size_t>(p.width) +
                                  static_cast<size_t>(x)) *
                                     c,
                    p.row(sy) + static_cast<size_t>(sx) * c, c);
      }
    p.bytes = std::move(out);
  }
};

struct ToTensorImpl : Impl {
  void apply(Pixels& p, Random&) const override { p.to_floats(); }
};

struct NormalizeImpl : Impl {
  std::vector<double> mean, std;
  NormalizeImpl(std::vector<double> m, std::vector<double> s)
      : mean(std::move(m)), std(std::move(s)) {}
  void apply(Pixels& p, Random&) const override {
    p.to_floats();
    if (mean.size() != 1 && mean.size() != static_cast<size_t>(p.channels))
      fail(ErrorKind::Value, "Normalize",
           "has " + std::to_string(mean.size()) + " means, the image " +
               std::to_string(p.channels) + " channels",
           SourceLoc::current());
    for (int c = 0; c < p.channels; ++c) {
      size_t k = mean.size() == 1 ? 0 : static_cast<size_t>(c);
      auto m = static_cast<float>(mean[k]), s = static_cast<float>(1 / std[k]);
      float* v = p.plane(c);
      for (size_t i = 0, n = p.pixels(); i < n; ++i) v[i] = (v[i] - m) * s;
    }
  }
};

struct ErasingImpl : Impl {
  RandomErasingOptions o;
  explicit ErasingImpl(const RandomErasingOptions& options) : o(options) {}
  void apply(Pixels& p, Random& r) const override {
    p.to_floats();
    if (r.uniform() >= o.p) return;
    for (int attempt = 0; attempt < 10; ++attempt) {
      double area = static_cast<double>(p.pixels()) * r.uniform(o.scale.first, o.scale.second);
      double ratio = std::exp(r.uniform(std::log(o.ratio.first), std::log(o.ratio.second)));
      int h = static_cast<int>(std::lround(std::sqrt(area * ratio))),
          w = static_cast<int>(std::lround(std::sqrt(area / ratio)));
      if (h < 1 || w < 1 || h >= p.height || w >= p.width) continue;
      int y = static_cast<int>(r.below(p.height - h + 1)),
          x = static_cast<int>(r.below(p.width - w + 1));
      for (int c = 0; c < p.channels; ++c)
        for (int i = 0; i < h; ++i)
          std::fill_n(p.plane(c) + static_cast<size_t>(y + i) * static_cast<size_t>(p.width) +
                          static_cast<size_t>(x),
                      w, static_cast<float>(o.value));
      return;
    }
  }
};

struct LambdaImpl : Impl {
  std::function<Tensor(const Tensor&)> fn;
  explicit LambdaImpl(std::function<Tensor(const Tensor&)> f) : fn(std::move(f)) {}
  void apply(Pixels& p, Random&) const override {
    p = Pixels::of(fn(p.tensor()), SourceLoc::current());
  }
};

}  // namespace

Transform Resize(int size, SourceLoc loc) {
  check_size(size, "Resize", loc);
  return make<ResizeImpl>(size, 0);
}
Transform Resize(int height, int width, SourceLoc loc) {
  check_size(std::min(height, width), "Resize", loc);
  return make<ResizeImpl>(height, width);
}
Transform CenterCrop(int size, SourceLoc loc) {
  check_size(size, "CenterCrop", loc);
  return make<CenterCropImpl>(size);
}
Transform RandomCrop(int size, const RandomCropOptions& o, SourceLoc loc) {
  check_size(size, "RandomCrop", loc);
  if (o.padding < 0) fail(ErrorKind::Value, "RandomCrop", "the padding is negative", user_loc(loc));
  return make<RandomCropImpl>(size, o.padding);
}
Transform RandomResizedCrop(int size, const RandomResizedCropOptions& o, SourceLoc loc) {
  check_size(size, "RandomResizedCrop", loc);
  if (!(o.scale.first > 0 && o.scale.first <= o.scale.second && o.ratio.first > 0 &&
        o.ratio.first <= o.ratio.second))
    fail(ErrorKind::Value, "RandomResizedCrop",
         "scale and ratio are positive ranges, the smaller value first", user_loc(loc));
  return make<RandomResizedCropImpl>(size, o);
}
Transform RandomHorizontalFlip(double p, SourceLoc loc) {
  check_probability(p, "RandomHorizontalFlip", loc);
  return make<FlipImpl>(p, true);
}
Transform RandomVerticalFlip(double p, SourceLoc loc) {
  check_probability(p, "RandomVerticalFlip", loc);
  return make<FlipImpl>(p, false);
}
Transform RandomRotation(double degrees, SourceLoc loc) {
  if (!(degrees >= 0))
    fail(ErrorKind::Value, "RandomRotation", "the angle is negative", user_loc(loc));
  return make<RotationImpl>(degrees);
}
Transform ToTensor() { return make<ToTensorImpl>(); }
Transform Normalize(std::vector<double> mean, std::vector<double> std, SourceLoc loc) {
  if (mean.empty() || mean.size() != std.size() ||
      std::find(std.begin(), std.end(), 0.0) != std.end())
    fail(ErrorKind::Value, "Normalize",
         "needs as many means as standard deviations, none of these 0", user_loc(loc));
  return make<NormalizeImpl>(std::move(mean), std::move(std));
}
Transform RandomErasing(const RandomErasingOptions& o, SourceLoc loc) {
  check_probability(o.p, "RandomErasing", loc);
  if (!(o.scale.first > 0 && o.scale.first <= o.scale.second && o.ratio.first > 0 &&
        o.ratio.first <= o.ratio.second))
    fail(ErrorKind::Value, "RandomErasing",
         "scale and ratio are positive ranges, the smaller value first", user_loc(loc));
  return make<ErasingImpl>(o);
}
Transform Lambda(std::function<Tensor(const Tensor&)> fn) {
  return make<LambdaImpl>(std::move(fn));
}

}  // namespace ingot::data
