// Resizing by a triangle filter, one direction after the other: rows first, because adding complete
// rows suits SIMD and because it leaves fewer rows for the second pass.
#include <algorithm>
#include <cmath>

#include "data/pixels.h"

namespace ingot::data {
namespace {

struct Taps {
  std::vector<int> begin;      // of each result, the first source element
  std::vector<int> count;      // and how many
  std::vector<float> weights;  // `most` for each result
  int most = 0;
};

// Results over the source [start, start + length) of `size` elements.
Taps make_taps(double start, double length, int size, const Results& results) {
  const int n = results.count;
  double scale = length / static_cast<double>(results.full), support = std::max(1.0, scale);
  Taps t;
  t.most = static_cast<int>(std::ceil(support)) * 2 + 1;
  t.begin.resize(static_cast<size_t>(n));
  t.count.resize(static_cast<size_t>(n));
  t.weights.assign(static_cast<size_t>(n) * static_cast<size_t>(t.most), 0);
  // Only pixels of the window count, as if the rest had been cropped before.
  int low = std::max(0, static_cast<int>(std::floor(start + 1e-9))),
      high = std::min(size, static_cast<int>(std::ceil(start + length - 1e-9)));
  for (int i = 0; i < n; ++i) {
    double centre = start + (results.first + i + 0.5) * scale;
    int first = std::max(low, static_cast<int>(centre - support + 0.5)),
        last = std::min(high, static_cast<int>(centre + support + 0.5));
    first = std::clamp(first, 0, size - 1);
    last = std::clamp(last, first + 1, std::min(size, first + t.most));
    double sum = 0;
    float* w = &t.weights[static_cast<size_t>(i) * static_cast<size_t>(t.most)];
    for (int k = first; k < last; ++k) {
      double v = std::max(0.0, 1 - std::abs((k + 0.5 - centre) / support));
      w[k - first] = static_cast<float>(v);
      sum += v;
    }
    if (sum == 0) w[0] = 1, sum = 1, last = first + 1;
    for (int k = 0; k < last - first; ++k) w[k] = static_cast<float>(w[k] / sum);
    t.begin[static_cast<size_t>(i)] = first;
    t.count[static_cast<size_t>(i)] = last - first;
  }
  return t;
}

uint8_t to_byte(float v) {
  return static_cast<uint8_t>(std::clamp(static_cast<int>(v + 0.5f), 0, 255));
}

// out[x] = sum over rows of weight * row[x]
void add_rows(const uint8_t* from, size_t stride, const float* weights, int count, float* out,
              size_t n) {
  for (size_t x = 0; x < n; ++x) out[x] = weights[0] * static_cast<float>(from[x]);
  for (int k = 1; k < count; ++k) {
    const uint8_t* row = from + static_cast<size_t>(k) * stride;
    const float w = weights[k];
    for (size_t x = 0; x < n; ++x) out[x] += w * static_cast<float>(row[x]);
  }
}

template <int C>
void mix_columns(const float* row, int offset, const Taps& t, uint8_t* out, int n) {
  for (int i = 0; i < n; ++i) {
    const float* p = row + static_cast<size_t>(t.begin[static_cast<size_t>(i)] - offset) * C;
    const float* w = &t.weights[static_cast<size_t>(i) * static_cast<size_t>(t.most)];
    float sum[C] = {};
    for (int k = 0, count = t.count[static_cast<size_t>(i)]; k < count; ++k, p += C)
      for (int c = 0; c < C; ++c) sum[c] += w[k] * p[c];
    for (int c = 0; c < C; ++c) out[i * C + c] = to_byte(sum[c]);
  }
}

}  // namespace

void resize(const uint8_t* from, int from_width, int from_height, int channels,
            const io::Window& part, uint8_t* to, const Results& columns, const Results& rows) {
  const int width = columns.count, height = rows.count;
  Taps down = make_taps(part.y, part.height, from_height, rows),
       across = make_taps(part.x, part.width, from_width, columns);
  const size_t stride = static_cast<size_t>(from_width) * static_cast<size_t>(channels);
  // Columns outside the window are not touched.
  int left = across.begin.front(), right = across.begin.back() + across.count.back();
  for (size_t i = 0; i < across.begin.size(); ++i) {
    left = std::min(left, across.begin[i]);
    right = std::max(right, across.begin[i] + across.count[i]);
  }
  const size_t n = static_cast<size_t>(right - left) * static_cast<size_t>(channels);
  std::vector<float> row(n);
  for (int y = 0; y < height; ++y) {
    size_t i = static_cast<size_t>(y);
    add_rows(
        from + static_cast<size_t>(down.begin[i]) * stride + static_cast<size_t>(left * channels),
        stride, &down.weights[i * static_cast<size_t>(down.most)], down.count[i], row.data(), n);
    uint8_t* out = to + i * static_cast<size_t>(width * channels);
    if (channels == 3)
      mix_columns<3>(row.data(), left, across, out, width);
    else
      mix_columns<1>(row.data(), left, across, out, width);
  }
}

}  // namespace ingot::data
