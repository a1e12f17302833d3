// ColorJitter: brightness, contrast, saturation and hue by Pillow's formulas, on bytes, in a random
// order.
#include <algorithm>
#include <array>
#include <cmath>
#include <memory>

#include "data/pixels.h"
#include "ops/common.h"

namespace ingot::data {
namespace {

uint8_t clip(float v) { return static_cast<uint8_t>(std::clamp(v, 0.0f, 255.0f)); }

// Pillow's grey: (19595 r + 38470 g + 7471 b + 32768) / 65536.
int grey(const uint8_t* p) { return (19595 * p[0] + 38470 * p[1] + 7471 * p[2] + 32768) >> 16; }

// other + factor * (pixel - other)
uint8_t blend(uint8_t pixel, float other, float factor) {
  return clip(other + factor * (static_cast<float>(pixel) - other));
}

void brightness(Pixels& p, float factor) {
  for (uint8_t& v : p.bytes) v = blend(v, 0, factor);
}

void contrast(Pixels& p, float factor) {
  int64_t sum = 0;
  size_t c = static_cast<size_t>(p.channels), n = p.pixels();
  for (size_t i = 0; i < n; ++i) sum += c == 3 ? grey(&p.bytes[3 * i]) : p.bytes[i];
  float mean = std::floor(static_cast<float>(sum) / static_cast<float>(n) + 0.5f);
  for (uint8_t& v : p.bytes) v = blend(v, mean, factor);
}

void saturation(Pixels& p, float factor) {
  if (p.channels != 3) return;
  for (size_t i = 0; i < p.bytes.size(); i += 3) {
    auto g = static_cast<float>(grey(&p.bytes[i]));
    for (size_t c = 0; c < 3; ++c) p.bytes[i + c] = blend(p.bytes[i + c], g, factor);
  }
}

// Hue in [0, 6), rotated around the circle with value and chroma kept.
void hue(Pixels& p, float shift) {
  if (p.channels != 3) return;
  for (size_t i = 0; i < p.bytes.size(); i += 3) {
    uint8_t* v = &p.bytes[i];
    auto [low, high] = std::minmax({v[0], v[1], v[2]});
    if (low == high) continue;
    float d = static_cast<float>(high - low), r = v[0], g = v[1], b = v[2];
    float h = high == v[0] ? (g - b) / d : high == v[1] ? 2 + (b - r) / d : 4 + (r - g) / d;
    h = std::fmod(h + 6 * shift + 12, 6.0f);
    float f = h - std::floor(h), top = high, bottom = low, up = bottom + d * f, down = top - d * f;
    std::array<float, 3> out{};
    switch (static_cast<int>(h) % 6) {
      case 0:
        out = {top, up, bottom};
        break;
      case 1:
        out = {down, top, bottom};
        break;
      case 2:
        out = {bottom, top, up};
        break;
      case 3:
        out = {bottom, down, top};
        break;
      case 4:
        out = {up, bottom, top};
        break;
      default:
        out = {top, bottom, down};
        break;
    }
    for (size_t c = 0; c < 3; ++c) v[c] = clip(out[c] + 0.5f);
  }
}

struct ColorJitterImpl : Transform::Impl {
  ColorJitterOptions o;
  explicit ColorJitterImpl(const ColorJitterOptions& options) : o(options) {}
  void apply(Pixels& p, Random& r) const override {
    p.to_bytes();
    std::array<int, 4> order{0, 1, 2, 3};
    for (int64_t i = 3; i > 0; --i)
      std::swap(order[static_cast<size_t>(i)], order[static_cast<size_t>(r.below(i + 1))]);
    auto factor = [&](double v) {
      return static_cast<float>(r.uniform(std::max(0.0, 1 - v), 1 + v));
    };
    float b = factor(o.brightness), c = factor(o.contrast), s = factor(o.saturation),
          h = static_cast<float>(r.uniform(-o.hue, o.hue));
    for (int k : order) {
      if (k == 0 && o.brightness > 0) brightness(p, b);
      if (k == 1 && o.contrast > 0) contrast(p, c);
      if (k == 2 && o.saturation > 0) saturation(p, s);
      if (k == 3 && o.hue > 0) hue(p, h);
    }
  }
};

}  // namespace

Transform ColorJitter(const ColorJitterOptions& o, SourceLoc loc) {
  if (!(o.brightness >= 0 && o.contrast >= 0 && o.saturation >= 0 && o.hue >= 0 && o.hue <= 0.5))
    fail(ErrorKind::Value, "ColorJitter", "no factor may be negative, and hue is at most 0.5",
         user_loc(loc));
  return Transform(std::make_shared<const ColorJitterImpl>(o));
}

}  // namespace ingot::data
