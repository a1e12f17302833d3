// Convolutions of float32 with 3 x 3 windows and stride 1 by Winograd's F(2x2, 3x3)
// (winograd_simd.h): tiles of 2 x 2 results, 16 values ("frequencies") for each tile and channel,
// and for each frequency one matrix product over the channels. That is 4/9 of the plain sum's
// multiplications, and sums of a ninth of its length, so that results are as close to the exact
// ones. The work is split by sizes alone.
//
// Small weights: a task takes some rows of tiles through all three stages in its cache.
// Large ones: the stages follow each other over chunks of samples, so that each frequency's
// weight is read once per chunk.
#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "backend/cpu/conv/conv_parts.h"
#include "backend/cpu/conv/winograd_simd.h"
#include "backend/cpu/gemm/gemm.h"
#include "backend/cpu/library.h"
#include "backend/cpu/support/memory.h"
#include "backend/cpu/support/threads.h"
#include "base/env.h"

namespace ingot::cpu {

namespace {

constexpr int kFrequencies = 16;
constexpr int64_t kLine =
    16;  // floats: keeps the frequencies of a tile out of one set of the cache

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
int64_t round_up(int64_t a, int64_t to) { return ceil_div(a, to) * to; }

/// Scratch of a thread, kept between calls.
float* thread_scratch(int64_t floats) {
  return reinterpret_cast<float*>(thread_memory(static_cast<size_t>(floats) * sizeof(float)));
}

/// Zeros to read where a tile crosses the edge.
const float* zeros(int64_t n) {
  return static_cast<const float*>(thread_zeros(static_cast<size_t>(n) * sizeof(float)));
}

/// Rows of tiles, of a sample.
struct TileRows {
  int64_t sample, from, to;
};

/// An activation seen as tiles: of 4 x 4 pixels that overlap (what is read), or of 2 x 2 pixels
/// (results and their gradients).
class Tiles {
 public:
  Tiles() = default;
  Tiles(const ConvShape& s, const ConvShape::Place& p, const int64_t size[3], int64_t channels,
        int width, int64_t front, int64_t across)
      : part_(s, p, size, channels),
        rows_(size[1]),
        columns_(size[2]),
        channels_(channels),
        across_(across),
        front_(front),
        width_(width) {}

  /// The memory's rows that these tiles touch, and what a copy of them takes, in floats.
  Part rows(const TileRows& t) const {
    const int64_t from = std::clamp<int64_t>(2 * t.from - front_, 0, rows_ - 1),
                  to = std::clamp<int64_t>(2 * t.to - front_ + width_ - 2, from + 1, rows_);
    return {t.sample, 1, from, to - from, 0, channels_};
  }
  int64_t floats(const TileRows& t) const { return part_.bytes(rows(t)) / 4; }

  /// The rows of t, channels-last: in place or in `local`.
  float* read(void* base, const TileRows& t, float* local) const {
    const Part q = rows(t);
    if (char* there = part_.direct(base, q)) return reinterpret_cast<float*>(there);
    part_.gather(reinterpret_cast<char*>(local), base, q);
    return local;
  }
  float* write(void* base, const TileRows& t, float* local) const {
    char* there = part_.direct(base, rows(t));
    return there ? reinterpret_cast<float*>(there) : local;
  }
  void written(void* base, const TileRows& t, float* at) const {
    if (!part_.direct(base, rows(t))) part_.scatter(base, reinterpret_cast<char*>(at), rows(t));
  }

  /// fn(tile, its pixels) for tiles [first, last) of t, counted from its first; pixels outside are
  /// `outside`.
  template <class P, class Fn>
  void each(P* at, P* outside, const TileRows& t, int64_t first, int64_t last, Fn fn) const {
    const Part q = rows(t);
    P* pixel[16];
    for (int64_t i = first; i < last; ++i) {
      const int64_t y0 = 2 * (t.from + i / across_) - front_, x0 = 2 * (i % across_) - front_;
      for (int64_t y = 0; y < width_; ++y)
        for (int64_t x = 0; x < width_; ++x) {
          const int64_t r = y0 + y - q.r0, c = x0 + x;
          const bool in = r >= 0 && r < q.r && c >= 0 && c < columns_;
          pixel[y * width_ + x] = in ? at + (r * columns_ + c) * channels_ : outside;
        }
      fn(i, pixel);
    }
  }

 private:
  Activation part_;
  int64_t rows_ = 0, columns_ = 0, channels_ = 0, across_ = 1, front_ = 0;
  int width_ = 2;
};

/// Sizes that all three convolutions have.
struct Grid {
  int64_t down, across, tiles, samples;  // tiles of a sample
  explicit Grid(const ConvShape& s, const int64_t out[3])
      : down(ceil_div(out[1], 2)),
        across(ceil_div(out[2], 2)),
        tiles(down * across),
        samples(s.N) {}
  /// Pieces of complete rows of tiles, about this many tiles each.
  std::vector<TileRows> pieces(int64_t about, int64_t from, int64_t to) const {
    const int64_t count = std::clamp<int64_t>(tiles / std::max<int64_t>(1, about), 1, down),
                  step = ceil_div(down, count);
    std::vector<TileRows> r;
    for (int64_t n = from; n < to; ++n)
      for (int64_t d = 0; d < down; d += step) r.push_back({n, d, std::min(d + step, down)});
    return r;
  }
};

// ---- Forward and the input's gradient

class Winograd final : public CpuExecutable {
 public:
  explicit Winograd(const LibrarySpec& spec)
      : spec_(spec),
        s_(spec),
        forward_(spec.op == Op::Conv),
        g_(gemm_f32()),
        r_(winograd_simd()),
        grid_(s_, forward_ ? s_.y : s_.x) {
    K_ = forward_ ? s_.C : s_.O;
    N_ = forward_ ? s_.O : s_.C;
    const int64_t front = forward_ ? s_.pad[1] : 2 - s_.pad[1];
    in_ = forward_ ? Tiles(s_, s_.px, s_.x, K_, 4, front, grid_.across)
                   : Tiles(s_, s_.py, s_.y, K_, 4, front, grid_.across);
    out_ = forward_ ? Tiles(s_, s_.py, s_.y, N_, 2, 0, grid_.across)
                    : Tiles(s_, s_.px, s_.x, N_, 2, 0, grid_.across);
    panels_ = ceil_div(N_, g_.nr);
    weight_step_ = K_ * panels_ * g_.nr + kLine;
    const int64_t weight = kFrequencies * weight_step_, tile = kFrequencies * (K_ + N_);
    fused_ = weight * 4 <= (1 << 20) + (1 << 16);
    if (fused_) {
      chunk_ = s_.N;
      block_ = std::clamp<int64_t>(round_up((112 << 10) / tile, g_.mr), g_.mr, 64);
    } else {
      chunk_ = std::clamp<int64_t>((2 << 20) / (tile * grid_.tiles), 1, s_.N);
    }
    const int64_t count = chunk_ * grid_.tiles;
    v_step_ = (fused_ ? block_ : count) * K_ + kLine;
    m_step_ = (fused_ ? block_ : count) * N_ + kLine;
    scratch_bytes =
        static_cast<size_t>(weight + (fused_ ? 0 : kFrequencies * (v_step_ + m_step_)) + kLine) *
        sizeof(float);
  }

  void run(void* const* buffers, void* scratch, const RunArgs&) override {
    auto* u = reinterpret_cast<float*>(line_aligned(scratch));
    pack(buffers, u);
    if (fused_) {
      const std::vector<TileRows> tasks = grid_.pieces(4 * block_, 0, s_.N);
      parallel_for(static_cast<int64_t>(tasks.size()), 1, [&](int64_t b, int64_t e) {
        for (int64_t t = b; t < e; ++t) whole(tasks[static_cast<size_t>(t)], buffers, u);
      });
      return;
    }
    float *v = u + kFrequencies * weight_step_, *m = v + kFrequencies * v_step_;
    for (int64_t n = 0; n < s_.N; n += chunk_)
      stages(n, std::min(chunk_, s_.N - n), buffers, u, v, m);
  }

 private:
  /// The weight's frequencies, in panels for the product.
  void pack(void* const* buffers, float* u) const {
    const int64_t chunk = 16, chunks = ceil_div(K_, chunk), nr = g_.nr;
    const auto* w = static_cast<const float*>(buffers[s_.iw]) + s_.pw.offset;
    const int64_t k_stride = forward_ ? s_.pw.channel : s_.pw.outer,
                  n_stride = forward_ ? s_.pw.outer : s_.pw.channel;
    parallel_for(panels_ * chunks, std::max<int64_t>(1, panels_ * chunks / 64),
                 [&](int64_t b, int64_t e) {
                   float* taps = thread_scratch(chunk * 9 * nr);
                   for (int64_t t = b; t < e; ++t) {
                     const int64_t n0 = t / chunks * nr, k0 = t % chunks * chunk,
                                   k = std::min(chunk, K_ - k0), n = std::min<int64_t>(nr, N_ - n0);
                     if (n < nr)
                       std::memset(taps, 0, static_cast<size_t>(chunk * 9 * nr) * sizeof(float));
                     const int64_t size[4] = {k, 3, 3, n}, to[4] = {9 * nr, 3 * nr, nr, 1},
                                   from[4] = {k_stride, s_.pw.dim[1], s_.pw.dim[2], n_stride};
                     copy_box(taps, to, w + n0 * n_stride + k0 * k_stride, from, size, 4, 4);
                     // The input's gradient uses the reversed window.
                     for (int64_t i = 0; i < k; ++i)
                       r_.window(taps + i * 9 * nr + (forward_ ? 0 : 8 * nr), forward_ ? nr : -nr,
                                 nr, u + n0 * K_ + (k0 + i) * nr, weight_step_);
                   }
                 });
  }

  /// Frequency f of `count` tiles: m = v u.
  void product(const float* v, const float* u, float* m, int64_t count) const {
    for (int64_t j = 0; j < panels_; ++j)
      for (int64_t i = 0; i < count; i += g_.mr)
        g_.block({K_, K_, 1, g_.nr, K_ * g_.nr, N_}, std::min<int64_t>(g_.mr, count - i),
                 std::min<int64_t>(g_.nr, N_ - j * g_.nr), v + i * K_, u + j * K_ * g_.nr,
                 m + i * N_ + j * g_.nr, false);
  }

  const float* bias(void* const* buffers) const {
    return spec_.has(Epilogue::Bias)
               ? static_cast<const float*>(buffers[3]) + spec_.operands[3].offset
               : nullptr;
  }
  void* source(void* const* buffers) const { return buffers[forward_ ? s_.ix : s_.iy]; }

  void whole(const TileRows& t, void* const* buffers, const float* u) const {
    const int64_t in = round_up(in_.floats(t), kLine), out = round_up(out_.floats(t), kLine);
    float* local = thread_scratch(in + out + kFrequencies * (v_step_ + m_step_));
    float *v = local + in + out, *m = v + kFrequencies * v_step_;
    const float *x = in_.read(source(buffers), t, local), *none = zeros(K_);
    float* y = out_.write(buffers[0], t, local + in);
    const int64_t tiles = (t.to - t.from) * grid_.across;
    for (int64_t first = 0; first < tiles; first += block_) {
      const int64_t last = std::min(first + block_, tiles);
      in_.each(x, none, t, first, last, [&](int64_t i, const float* const* pixel) {
        r_.pixels(pixel, K_, v + (i - first) * K_, v_step_);
      });
      for (int f = 0; f < kFrequencies; ++f)
        product(v + f * v_step_, u + f * weight_step_, m + f * m_step_, last - first);
      out_.each(y, static_cast<float*>(nullptr), t, first, last,
                [&](int64_t i, float* const* pixel) {
                  r_.results(m + (i - first) * N_, m_step_, N_, bias(buffers), pixel);
                });
    }
    out_.written(buffers[0], t, y);
  }

  /// Samples [n, n + count), one stage after the other.
  void stages(int64_t n, int64_t count, void* const* buffers, const float* u, float* v,
              float* m) const {
    const std::vector<TileRows> tasks = grid_.pieces(64, n, n + count);
    auto at = [&](const TileRows& t) {
      return (t.sample - n) * grid_.tiles + t.from * grid_.across;
    };
    auto for_each = [&](auto fn) {
      parallel_for(static_cast<int64_t>(tasks.size()), 1, [&](int64_t b, int64_t e) {
        for (int64_t i = b; i < e; ++i) fn(tasks[static_cast<size_t>(i)]);
      });
    };
    for_each([&](const TileRows& t) {
      const float* x = in_.read(source(buffers), t, thread_scratch(in_.floats(t)));
      in_.each(x, zeros(K_), t, 0, (t.to - t.from) * grid_.across,
               [&](int64_t i, const float* const* pixel) {
                 r_.pixels(pixel, K_, v + (at(t) + i) * K_, v_step_);
               });
    });
    const int64_t tiles = count * grid_.tiles, rows = 12 * g_.mr, blocks = ceil_div(tiles, rows);
    parallel_for(kFrequencies * blocks, 1, [&](int64_t b, int64_t e) {
      for (int64_t i = b; i < e; ++i) {
        const int64_t f = i / blocks, first = i % blocks * rows;
        product(v + f * v_step_ + first * K_, u + f * weight_step_, m + f * m_step_ + first * N_,
                std::min(rows, tiles - first));
      }
    });
    for_each([&](const TileRows& t) {
      float* y = out_.write(buffers[0], t, thread_scratch(out_.floats(t)));
      out_.each(y, static_cast<float*>(nullptr), t, 0, (t.to - t.from) * grid_.across,
                [&](int64_t i, float* const* pixel) {
                  r_.results(m + (at(t) + i) * N_, m_step_, N_, bias(buffers), pixel);
                });
      out_.written(buffers[0], t, y);
    });
  }

  LibrarySpec spec_;
  ConvShape s_;
  bool forward_, fused_ = false;
  const GemmOps& g_;
  const WinogradSimd& r_;
  Grid grid_;
  Tiles in_, out_;
  int64_t K_ = 0, N_ = 0, panels_ = 0, weight_step_ = 0, v_step_ = 0, m_step_ = 0, block_ = 0,
          chunk_ = 1;
};

// ---- The weight's gradient

class WinogradGradWeight final : public CpuExecutable {
 public:
  explicit WinogradGradWeight(const LibrarySpec& spec)
      : s_(spec), g_(gemm_f32()), r_(winograd_simd()), grid_(s_, s_.y) {
    x_ = Tiles(s_, s_.px, s_.x, s_.C, 4, s_.pad[1], grid_.across);
    y_ = Tiles(s_, s_.py, s_.y, s_.O, 2, 0, grid_.across);
    const int64_t tile = kFrequencies * (s_.C + s_.O);
    chunk_ = std::clamp<int64_t>((2 << 20) / (tile * grid_.tiles), 1, s_.N);
    v_step_ = chunk_ * grid_.tiles * s_.C + kLine;
    z_step_ = chunk_ * grid_.tiles * s_.O + kLine;
    w_step_ = s_.C * s_.O + kLine;
    scratch_bytes =
        static_cast<size_t>(kFrequencies * (v_step_ + z_step_ + w_step_) + 4 * kLine + g_.nr) *
        sizeof(float);
  }

  void run(void* const* buffers, void* scratch, const RunArgs&) override {
    auto* w = reinterpret_cast<float*>(line_aligned(scratch));
    float *v = w + kFrequencies * w_step_, *z = v + kFrequencies * v_step_;
    for (int64_t n = 0; n < s_.N; n += chunk_) {
      const int64_t count = std::min(chunk_, s_.N - n);
      frequencies(n, count, buffers, v, z);
      products(count * grid_.tiles, v, z, w, n > 0);
    }
    finish(static_cast<float*>(buffers[0]) + s_.pw.offset, w);
  }

 private:
  void frequencies(int64_t n, int64_t count, void* const* buffers, float* v, float* z) const {
    const std::vector<TileRows> tasks = grid_.pieces(64, n, n + count);
    parallel_for(static_cast<int64_t>(tasks.size()), 1, [&](int64_t b, int64_t e) {
      for (int64_t k = b; k < e; ++k) {
        const TileRows& t = tasks[static_cast<size_t>(k)];
        const int64_t at = (t.sample - n) * grid_.tiles + t.from * grid_.across,
                      tiles = (t.to - t.from) * grid_.across;
        float* local = thread_scratch(std::max(x_.floats(t), y_.floats(t)));
        const float *x = x_.read(buffers[s_.ix], t, local), *none = zeros(std::max(s_.C, s_.O));
        x_.each(x, none, t, 0, tiles, [&](int64_t i, const float* const* pixel) {
          r_.pixels(pixel, s_.C, v + (at + i) * s_.C, v_step_);
        });
        const float* y = y_.read(buffers[s_.iy], t, local);
        y_.each(y, none, t, 0, tiles, [&](int64_t i, const float* const* pixel) {
          r_.gradients(pixel, s_.O, z + (at + i) * s_.O, z_step_);
        });
      }
    });
  }

  /// w (+)= v' z for each frequency, over this many tiles.
  void products(int64_t tiles, const float* v, const float* z, float* w, bool add) const {
    const int64_t rows = 64, blocks = ceil_div(s_.C, rows), depth = 192;
    parallel_for(kFrequencies * blocks, 1, [&](int64_t b, int64_t e) {
      for (int64_t t = b; t < e; ++t) {
        const int64_t f = t / blocks, c0 = t % blocks * rows, c1 = std::min(c0 + rows, s_.C);
        for (int64_t k = 0; k < tiles; k += depth)
          for (int64_t c = c0; c < c1; c += g_.mr)
            g_.block({std::min(depth, tiles - k), 0, s_.C, s_.O, g_.nr, s_.O},
                     std::min<int64_t>(g_.mr, c1 - c), s_.O, v + f * v_step_ + k * s_.C + c,
                     z + f * z_step_ + k * s_.O, w + f * w_step_ + c * s_.O, add || k > 0);
      }
    });
  }

  void finish(float* out, const float* w) const {
    const int64_t wide = 32, deep = 16, across = ceil_div(s_.O, wide), down = ceil_div(s_.C, deep);
    parallel_for(
        across * down, std::max<int64_t>(1, across * down / 64), [&](int64_t b, int64_t e) {
          float* taps = thread_scratch(deep * 9 * wide);
          for (int64_t t = b; t < e; ++t) {
            const int64_t o = t % across * wide, c = t / across * deep,
                          n = std::min(wide, s_.O - o), k = std::min(deep, s_.C - c);
            for (int64_t i = 0; i < k; ++i)
              r_.window_gradients(w + (c + i) * s_.O + o, w_step_, n, taps + i * 9 * wide, wide);
            const int64_t size[4] = {n, k, 3, 3}, from[4] = {1, 9 * wide, 3 * wide, wide},
                          to[4] = {s_.pw.outer, s_.pw.channel, s_.pw.dim[1], s_.pw.dim[2]};
            copy_box(out + o * s_.pw.outer + c * s_.pw.channel, to, taps, from, size, 4, 4);
          }
        });
  }

  ConvShape s_;
  const GemmOps& g_;
  const WinogradSimd& r_;
  Grid grid_;
  Tiles x_, y_;
  int64_t chunk_ = 1, v_step_ = 0, z_step_ = 0, w_step_ = 0;
};

/// Is it faster? Multiplications saved against the transforms' traffic, in those of the plain sum.
bool pays(const LibrarySpec& spec, const ConvShape& s) {
  const int64_t* out = spec.op == Op::ConvGradInput ? s.x : s.y;
  const Grid grid(s, out);
  const double tiles = static_cast<double>(grid.tiles * s.N),
               channels = static_cast<double>(s.C + s.O), pairs = static_cast<double>(s.C * s.O);
  const double plain = 9.0 * static_cast<double>(s.N * s.ys()) * pairs;
  const double ours = 16.0 * tiles * pairs + 16.0 * tiles * channels * 8 + 16.0 * pairs * 16;
  return ours < 0.9 * plain;
}

}  // namespace

bool wants_winograd(Op op) {
  static const std::string choice = env::text("INGOT_WINOGRAD").value_or("");
  return choice == "all" || (choice == "gradients" && op != Op::Conv);
}

const char* winograd_refuses(const LibrarySpec& spec) {
  if (spec.accumulate) return "it adds nothing to its result";
  for (const OperandSpec& o : spec.operands)
    if (o.dtype != DType::Float32) return "it computes in float32 only";
  if (spec.has(Epilogue::Bias) && (spec.op != Op::Conv || spec.operands[3].stride[0] != 1))
    return "the bias is not dense";
  const ConvShape s(spec);
  if (s.n != 2 || s.G != 1) return "it takes two dimensions and one group";
  if (s.C % 16 || s.O % 16 || s.C > 512 || s.O > 512)
    return "channels must be multiples of 16, up to 512";
  for (int d = 1; d < 3; ++d)
    if (s.k[d] != 3 || s.stride[d] != 1 || s.dilation[d] != 1 || s.pad[d] > 2 ||
        s.pad[d] != s.pad[1])
      return "it takes 3 x 3 windows with stride 1 and equal padding";
  return pays(spec, s) ? nullptr : "the transforms would cost more than they save";
}

std::unique_ptr<CpuExecutable> prepare_winograd(const LibrarySpec& spec, const char*&) {
  if (spec.op == Op::ConvGradWeight) return std::make_unique<WinogradGradWeight>(spec);
  return std::make_unique<Winograd>(spec);
}

}  // namespace ingot::cpu
