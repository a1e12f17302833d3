// Max pooling of float32 and its gradient over rows long and short, in both layouts: bit by bit
// what plain loops give, with any number of threads, NaN and equal elements included.
#include <doctest/doctest.h>
#include <ingot/ingot.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

using namespace ingot;

namespace {

struct Pool {
  int64_t n, c, h, w, kernel, stride, pad, dilation;
};
const Pool kPools[] = {
    {2, 3, 9, 112, 3, 2, 1, 1}, {1, 2, 7, 56, 3, 2, 1, 1},  {2, 2, 6, 23, 3, 2, 0, 1},
    {1, 3, 8, 64, 2, 2, 0, 1},  {1, 2, 5, 7, 3, 2, 1, 1},   {1, 1, 12, 40, 3, 1, 1, 1},
    {2, 1, 11, 37, 5, 2, 2, 1}, {1, 2, 9, 33, 3, 2, 1, 2},  {1, 2, 13, 29, 3, 3, 1, 1},
    {1, 1, 10, 50, 4, 2, 1, 1}, {1, 2, 9, 18, 1, 2, 0, 1},  {1, 1, 17, 35, 3, 1, 1, 3},
    {1, 40, 8, 8, 3, 2, 1, 1},  {2, 64, 6, 10, 2, 2, 0, 1}, {1, 2, 4, 300, 2, 1, 1, 1},
    {3, 17, 5, 6, 3, 1, 1, 1},
};

struct Result {
  std::vector<float> y, dx;
};

// Elements that are often equal, with NaN, infinities and both zeros among them.
std::vector<float> elements(int64_t n, uint32_t seed, bool special) {
  std::vector<float> v(static_cast<size_t>(n));
  const float odd[] = {NAN, std::numeric_limits<float>::infinity(),
                       -std::numeric_limits<float>::infinity(), -0.0f};
  for (float& x : v) {
    seed = seed * 1664525u + 1013904223u;
    x = static_cast<float>((seed >> 16) % 23) - 11.0f;
    if (special && (seed >> 8) % 11 == 0) x = odd[(seed >> 20) % 4];
    if (!special) x += static_cast<float>((seed >> 9) % 7) * 0.125f;
  }
  return v;
}

int64_t windows(const Pool& p, int64_t size) {
  return (size + 2 * p.pad - p.dilation * (p.kernel - 1) - 1) / p.stride + 1;
}

// The first largest element of a window, the first NaN before all; a window of nothing but -inf
// names its first place, inside or not.
Result loops(const Pool& p, const std::vector<float>& x, const std::vector<float>& g) {
  const int64_t oh = windows(p, p.h), ow = windows(p, p.w);
  Result r{std::vector<float>(g.size()), std::vector<float>(x.size(), 0.0f)};
  for (int64_t plane = 0; plane < p.n * p.c; ++plane)
    for (int64_t a = 0; a < oh; ++a)
      for (int64_t b = 0; b < ow; ++b) {
        float top = -std::numeric_limits<float>::infinity();
        auto at = [&](int64_t i, int64_t j) -> int64_t {
          const int64_t row = a * p.stride - p.pad + i * p.dilation,
                        col = b * p.stride - p.pad + j * p.dilation;
          return row < 0 || row >= p.h || col < 0 || col >= p.w ? -1
                                                                : (plane * p.h + row) * p.w + col;
        };
        int64_t where = at(0, 0);
        for (int64_t i = 0; i < p.kernel; ++i)
          for (int64_t j = 0; j < p.kernel; ++j) {
            const int64_t k = at(i, j);
            if (k < 0) continue;
            const float v = x[static_cast<size_t>(k)];
            if (std::isnan(top) || !(v > top || std::isnan(v))) continue;
            top = v;
            where = k;
          }
        const auto o = static_cast<size_t>((plane * oh + a) * ow + b);
        r.y[o] = top;
        if (where >= 0) r.dx[static_cast<size_t>(where)] += g[o];
      }
  return r;
}

Result ours(const Pool& p, const std::vector<float>& x, const std::vector<float>& g, bool last,
            bool positions) {
  const Dims shape{p.n, p.c, p.h, p.w}, result{p.n, p.c, windows(p, p.h), windows(p, p.w)};
  auto put = [&](const std::vector<float>& v, const Dims& s) {
    Tensor t = tensor(v, s);
    if (last) t = t.permute({0, 2, 3, 1}).contiguous().permute({0, 3, 1, 2});
    eval(t);
    return t.detach();
  };
  Tensor in = put(x, shape), out_gradient = put(g, result);
  Tensor y;
  Result r;
  if (positions) {
    in.requires_grad_();
    y = max_pool2d(in, p.kernel, p.stride, p.pad, p.dilation);
    y.backward(out_gradient);
    eval({y, in.grad()});
    r.dx = in.grad().contiguous().to_vector<float>();
  } else {
    y = max_pool2d(in, p.kernel, p.stride, p.pad, p.dilation);
  }
  r.y = y.detach().contiguous().to_vector<float>();
  return r;
}

bool same(const std::vector<float>& a, const std::vector<float>& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i)
    if (!(std::isnan(a[i]) && std::isnan(b[i])) && a[i] != b[i]) return false;
  return true;
}

}  // namespace

TEST_CASE("max pooling is what loops give, bit by bit") {
  const int before = get_num_threads();
  for (const Pool& p : kPools)
    for (bool special : {false, true}) {
      CAPTURE(p.w);
      CAPTURE(p.kernel);
      CAPTURE(p.stride);
      CAPTURE(special);
      const std::vector<float> x = elements(p.n * p.c * p.h * p.w, 7, special),
                               g = elements(p.n * p.c * windows(p, p.h) * windows(p, p.w), 99,
                                            false);
      const Result want = loops(p, x, g);
      for (bool last : {false, true})
        for (int threads : {1, 3}) {
          set_num_threads(threads);
          CAPTURE(last);
          const Result got = ours(p, x, g, last, true), plain = ours(p, x, g, last, false);
          CHECK(same(got.y, want.y));
          CHECK(same(plain.y, want.y));
          CHECK(same(got.dx, want.dx));
        }
    }
  set_num_threads(before);
}
