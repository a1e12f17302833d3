// Convolutions with few input channels: a network's first, on images. Rows of the image are copied
// with their padding, the phases of a stride separated, so that a window element steps through them
// with unit stride. The products (gemm.h) then read them in place: forward, the rows of A are
// neighbouring positions and its steps along k the window elements; for the weight's gradient, the
// rows are a column of the window and k runs over the positions. The work is split by sizes alone.
#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

#include "backend/cpu/conv/conv_parts.h"
#include "backend/cpu/gemm/gemm.h"
#include "backend/cpu/library.h"
#include "backend/cpu/support/memory.h"
#include "backend/cpu/support/threads.h"
#include "codegen/conv_shape.h"

namespace ingot::cpu {

namespace {

constexpr int64_t kMostChannels = 4, kMostWeights = 64 << 10;
constexpr int64_t kBand = 8;    // rows of the result whose part of the image is copied at a time
constexpr int64_t kParts = 16;  // partial sums of a weight's gradient

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

/// Scratch of a thread, kept between calls.
float* thread_scratch(int64_t floats) {
  return reinterpret_cast<float*>(thread_memory(static_cast<size_t>(floats) * sizeof(float)));
}

/// A band of the image: [channel][row][phase][position].
class Band {
 public:
  explicit Band(const ConvShape& s) : s_(s) {
    phase_ = (s.y[2] + (s.k[2] - 1) / s.stride[2] + 15) / 16 * 16;
    row_ = phase_ * s.stride[2];
    rows_ = (kBand - 1) * s.stride[1] + s.k[1];
  }
  int64_t floats() const { return s_.C * rows_ * row_; }
  int64_t row() const { return row_; }
  /// The offset of a window element for the first position of the band's first row.
  int64_t place(int64_t c, int64_t i, int64_t j) const {
    return (c * rows_ + i) * row_ + j % s_.stride[2] * phase_ + j / s_.stride[2];
  }
  /// Copies what `count` rows of the result from row y on read.
  void fill(float* to, const float* x, int64_t y, int64_t count) const {
    const int64_t first = y * s_.stride[1] - s_.pad[1], rows = (count - 1) * s_.stride[1] + s_.k[1];
    for (int64_t c = 0; c < s_.C; ++c)
      for (int64_t r = 0; r < rows; ++r) {
        float* at = to + (c * rows_ + r) * row_;
        if (first + r < 0 || first + r >= s_.x[1])
          std::memset(at, 0, static_cast<size_t>(row_) * sizeof(float));
        else
          fill_row(at, x + c * s_.px.channel + (first + r) * s_.px.dim[1]);
      }
  }

 private:
  void fill_row(float* to, const float* x) const {
    const int64_t step = s_.stride[2];
    for (int64_t f = 0; f < step; ++f, to += phase_) {
      // Position j of this phase is x[j * step + f - pad].
      const int64_t before = std::clamp<int64_t>(ceil_div(s_.pad[2] - f, step), 0, phase_),
                    end = std::clamp<int64_t>(ceil_div(s_.x[2] + s_.pad[2] - f, step), before,
                                              phase_);
      std::fill(to, to + before, 0.0f);
      const float* from = x + (before * step + f - s_.pad[2]) * s_.px.dim[2];
      if (step * s_.px.dim[2] == 1)
        std::copy_n(from, end - before, to + before);
      else if (step * s_.px.dim[2] == 2)
        for (int64_t j = before; j < end; ++j) to[j] = from[(j - before) * 2];
      else
        for (int64_t j = before; j < end; ++j) to[j] = from[(j - before) * step * s_.px.dim[2]];
      std::fill(to + end, to + phase_, 0.0f);
    }
  }
  const ConvShape& s_;
  int64_t phase_, row_, rows_;
};

class FewChannels : public CpuExecutable {
 protected:
  explicit FewChannels(const LibrarySpec& spec)
      : spec_(spec), s_(spec), y_(s_, s_.py, s_.y, s_.O), band_(s_), K_(s_.C * s_.ks()) {
    require_thread_memory(static_cast<size_t>(local_floats()) * sizeof(float));
  }
  /// A band and a row of results.
  int64_t local_floats() const { return band_.floats() + s_.y[2] * s_.O; }

  const float* sample(void* const* buffers, int64_t n) const {
    return static_cast<const float*>(buffers[s_.ix]) + s_.px.offset + n * s_.px.outer;
  }
  Part row_of_y(int64_t n, int64_t row) const { return {n, 1, row, 1, 0, s_.O}; }

  LibrarySpec spec_;
  ConvShape s_;
  Activation y_;
  Band band_;
  const GemmOps& g_ = gemm_f32();
  int64_t K_;
};

class Forward final : public FewChannels {
 public:
  explicit Forward(const LibrarySpec& spec) : FewChannels(spec) {
    for (int64_t c = 0; c < s_.C; ++c)
      for (int64_t i = 0; i < s_.k[1]; ++i)
        for (int64_t j = 0; j < s_.k[2]; ++j) places_.push_back(band_.place(c, i, j));
    y_.stream_if_large(s_.N * s_.O * s_.ys() * 4, s_.N * s_.C * s_.xs() * 4);
    scratch_bytes = static_cast<size_t>(K_ * s_.O) * sizeof(float) + 64;
  }

  void run(void* const* buffers, void* scratch, const RunArgs&) override {
    auto* weight = reinterpret_cast<float*>(line_aligned(scratch));
    g_.pack(weight, g_.nr, static_cast<const float*>(buffers[s_.iw]) + s_.pw.offset, DType::Float32,
            1, s_.pw.outer, K_, s_.O);
    const int64_t bands = ceil_div(s_.y[1], kBand);
    parallel_for(s_.N * bands, 1, [&](int64_t b, int64_t e) {
      for (int64_t t = b; t < e; ++t) band(buffers, weight, t / bands, t % bands * kBand);
    });
  }

 private:
  void band(void* const* buffers, const float* weight, int64_t n, int64_t first) const {
    const int64_t count = std::min(kBand, s_.y[1] - first);
    float *image = thread_scratch(local_floats()), *row = image + band_.floats();
    band_.fill(image, sample(buffers, n), first, count);
    for (int64_t r = 0; r < count; ++r) {
      const Part q = row_of_y(n, first + r);
      char* there = y_.direct(buffers[0], q);
      float* out = there ? reinterpret_cast<float*>(there) : row;
      const GemmBlock g{K_, 0, 0, g_.nr, K_ * g_.nr, s_.O, places_.data()};
      for (int64_t i = 0; i < s_.y[2]; i += g_.mr)
        g_.block(g, std::min<int64_t>(g_.mr, s_.y[2] - i), s_.O,
                 image + r * s_.stride[1] * band_.row() + i, weight, out + i * s_.O, false);
      if (spec_.has(Epilogue::Bias)) add_bias(buffers, out);
      if (!there) y_.scatter(buffers[0], reinterpret_cast<char*>(row), q);
    }
    if (y_.streams()) finish_stream();
  }
  void add_bias(void* const* buffers, float* out) const {
    const OperandSpec& b = spec_.operands[3];
    const float* bias = static_cast<const float*>(buffers[3]) + b.offset;
    for (int64_t i = 0; i < s_.y[2]; ++i, out += s_.O)
      for (int64_t o = 0; o < s_.O; ++o) out[o] += bias[o * b.stride[0]];
  }
  std::vector<int64_t> places_;  // of the window, in a band
};

class GradWeight final : public FewChannels {
 public:
  explicit GradWeight(const LibrarySpec& spec) : FewChannels(spec) {
    parts_ = std::min(kParts, s_.N * s_.y[1]);
    scratch_bytes = static_cast<size_t>(parts_ * K_ * s_.O) * sizeof(float) + 64;
  }

  void run(void* const* buffers, void* scratch, const RunArgs&) override {
    auto* sums = reinterpret_cast<float*>(line_aligned(scratch));
    const int64_t rows = s_.N * s_.y[1], each = K_ * s_.O;
    parallel_for(parts_, 1, [&](int64_t b, int64_t e) {
      for (int64_t p = b; p < e; ++p)
        part(buffers, rows * p / parts_, rows * (p + 1) / parts_, sums + p * each);
    });
    float* out = static_cast<float*>(buffers[0]) + s_.pw.offset;
    for (int64_t k = 0; k < K_; ++k) {
      // Sums are stored by channel, column and row of the window.
      const int64_t i = k % s_.k[1], j = k / s_.k[1] % s_.k[2], c = k / s_.ks();
      float* to = out + c * s_.pw.channel + i * s_.pw.dim[1] + j * s_.pw.dim[2];
      for (int64_t o = 0; o < s_.O; ++o) {
        float v = sums[k * s_.O + o];
        for (int64_t p = 1; p < parts_; ++p) v += sums[p * each + k * s_.O + o];
        to[o * s_.pw.outer] = v;
      }
    }
  }

 private:
  /// The sum over rows [from, to) of y, counted through all samples.
  void part(void* const* buffers, int64_t from, int64_t to, float* sum) const {
    float *image = thread_scratch(local_floats()), *local = image + band_.floats();
    std::fill_n(sum, K_ * s_.O, 0.0f);
    while (from < to) {
      const int64_t n = from / s_.y[1], first = from % s_.y[1],
                    count = std::min({kBand, to - from, s_.y[1] - first});
      band_.fill(image, sample(buffers, n), first, count);
      for (int64_t r = 0; r < count; ++r) {
        const Part q = row_of_y(n, first + r);
        char* y = y_.direct(buffers[s_.iy], q);
        if (!y) y_.gather(y = reinterpret_cast<char*>(local), buffers[s_.iy], q);
        add_row(image + r * s_.stride[1] * band_.row(), reinterpret_cast<const float*>(y), sum);
      }
      from += count;
    }
  }
  void add_row(const float* image, const float* y, float* sum) const {
    const GemmBlock g{s_.y[2], band_.row(), 0, s_.O, g_.nr, s_.O};
    for (int64_t c = 0; c < s_.C; ++c)
      for (int64_t j = 0; j < s_.k[2]; ++j)
        for (int64_t i = 0; i < s_.k[1]; i += g_.mr) {
          const int64_t rows = std::min<int64_t>(g_.mr, s_.k[1] - i);
          g_.block(g, rows, s_.O, image + band_.place(c, i, j), y, sum, true);
          sum += rows * s_.O;
        }
  }
  int64_t parts_;
};

}  // namespace

const char* conv_few_channels_refuses(const LibrarySpec& spec) {
  for (const OperandSpec& o : spec.operands)
    if (o.dtype != DType::Float32) return "it computes in float32 only";
  const ConvShape s(spec);
  if (s.n != 2 || s.G != 1 || s.dilation[1] != 1 || s.dilation[2] != 1)
    return "it takes two dimensions, one group, no dilation";
  if (s.C > kMostChannels) return "there are too many input channels";
  // Complete panels of output channels, and enough positions and taps for the products: with 3 x 3
  // windows oneDNN is faster. The weight is read for every few positions and must stay in the
  // cache.
  const int64_t taps = s.C * s.ks();
  if (s.O % gemm_f32().nr != 0) return "output channels do not fill its panels";
  if (s.k[1] < 4 || taps < 48 || s.y[2] < 16) return "the window or the image is too small";
  if (taps * s.O > kMostWeights) return "the weight does not stay in the cache";
  const bool dense = s.pw.dim[2] == 1 && s.pw.dim[1] == s.k[2] && s.pw.channel == s.ks();
  if (spec.op == Op::Conv && !dense) return "the weight is not dense";
  return nullptr;
}

std::unique_ptr<CpuExecutable> prepare_conv_few_channels(const LibrarySpec& spec, const char*&) {
  if (spec.op == Op::Conv) return std::make_unique<Forward>(spec);
  return std::make_unique<GradWeight>(spec);
}

}  // namespace ingot::cpu
