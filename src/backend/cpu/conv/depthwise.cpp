// Depthwise convolutions of float32 whose planes are dense rows: each channel separately, without
// any transposition. A few rows of a plane at a time are copied into the cache with zeros around
// them (and, for a stride, separated by the remainder of their columns), so that windows are plain
// vectors. The input's gradient is the same with the window reversed; the weight's is summed plane
// by plane, and over the samples in their order.
#include <algorithm>
#include <memory>
#include <vector>

#include "backend/cpu/conv/depthwise_simd.h"
#include "backend/cpu/library.h"
#include "backend/cpu/support/threads.h"
#include "codegen/conv_shape.h"

namespace ingot::cpu {

namespace {

constexpr int64_t kCached = 5 << 10;  // elements of a padded piece

bool dense_rows(const ConvShape::Place& p, const int64_t size[3]) {
  return p.dtype == DType::Float32 && (p.dim[2] == 1 || size[2] == 1);
}

class Depthwise final : public CpuExecutable {
 public:
  /// Why it is of another form, or nullptr.
  const char* init(const LibrarySpec& spec) {
    s_ = std::make_unique<ConvShape>(spec);
    const ConvShape& s = *s_;
    op_ = spec.op;
    if (s.G != s.C || s.O != s.C) return "channels are summed";
    if (s.x[0] != 1 || s.y[0] != 1 || s.k[0] != 1 || s.pad[0] != 0 || s.behind[0] != 0)
      return "it is three-dimensional";
    if (!dense_rows(s.px, s.x) || !dense_rows(s.py, s.y) || s.pw.dtype != DType::Float32)
      return "it takes dense rows of float32 only";
    if (s.ks() > 128) return "the window is too large";
    const bool to_x = op_ == Op::ConvGradInput;
    if (to_x && (s.stride[1] != 1 || s.stride[2] != 1)) return "the gradient has a stride";
    relu_ = spec.has(Epilogue::Relu);
    if (relu_ && op_ != Op::Conv) return "the gradient has a ReLU";
    if (spec.has(Epilogue::Bias)) {
      if (op_ != Op::Conv || spec.operands[3].dtype != DType::Float32)
        return "the bias is not float32";
      bias_ = spec.operands[3].offset;
      bias_step_ = spec.operands[3].stride[0];
      has_bias_ = true;
    }
    for (int d = 0; d < 2; ++d) {
      in_[d] = to_x ? s.y[d + 1] : s.x[d + 1];
      out_[d] = to_x ? s.x[d + 1] : s.y[d + 1];
      pad_[d] = to_x ? s.dilation[d + 1] * (s.k[d + 1] - 1) - s.pad[d + 1] : s.pad[d + 1];
      if (pad_[d] < 0) return "the padding is larger than the window";
    }
    if (out_[1] < 12) return "rows are so short that most of a vector would be empty";
    set_pieces();
    if (op_ == Op::ConvGradWeight)
      scratch_bytes = static_cast<size_t>(s.N * s.C * s.ks()) * sizeof(float);
    return nullptr;
  }

  void run(void* const* buffers, void* scratch, const RunArgs&) override {
    const ConvShape& s = *s_;
    const bool to_w = op_ == Op::ConvGradWeight;
    auto* partial = static_cast<float*>(scratch);
    parallel_for(s.N * s.C, std::max<int64_t>(1, (64 << 10) / (out_[0] * out_[1])),
                 [&](int64_t b, int64_t e) {
                   Local l(*this);
                   for (int64_t p = b; p < e; ++p)
                     to_w ? sum_plane(buffers, p, l, partial + p * s.ks())
                          : convolve_plane(buffers, p, l);
                 });
    if (!to_w) return;
    auto* out = static_cast<float*>(buffers[0]) + s.pw.offset;
    for (int64_t c = 0; c < s.C; ++c)
      for (int64_t k = 0; k < s.ks(); ++k) {
        float sum = partial[c * s.ks() + k];
        for (int64_t n = 1; n < s.N; ++n) sum += partial[(n * s.C + c) * s.ks() + k];
        out[c * s.pw.outer + k / s.k[2] * s.pw.dim[1] + k % s.k[2] * s.pw.dim[2]] = sum;
      }
  }

 private:
  struct Local {
    explicit Local(const Depthwise& d)
        : rows(static_cast<size_t>(d.piece_in_ * d.pitch_ + kPlaneBehind), 0.0f),
          weight(static_cast<size_t>(d.s_->ks())) {
      if (d.op_ != Op::ConvGradWeight) return;
      gradient.resize(static_cast<size_t>(d.piece_ * d.gradient_pitch_ + kPlaneBehind), 0.0f);
      sums.resize(static_cast<size_t>(d.s_->ks() * depthwise_simd().lanes()));
    }
    std::vector<float> rows, weight, gradient, sums;
  };

  void set_pieces() {
    const ConvShape& s = *s_;
    const int64_t stride = op_ == Op::ConvGradInput ? 1 : s.stride[2];
    // Full vectors of windows read their own row only.
    gradient_pitch_ = (out_[1] + 15) / 16 * 16;
    part_ = (gradient_pitch_ + s.dilation[2] * (s.k[2] - 1) / stride + 1 + 15) / 16 * 16;
    pitch_ = part_ * stride;
    const int64_t reach = s.dilation[1] * (s.k[1] - 1) + 1,
                  down = op_ == Op::ConvGradInput ? 1 : s.stride[1];
    piece_ = std::clamp<int64_t>((kCached / pitch_ - reach) / down + 1, 1, out_[0]);
    piece_in_ = (piece_ - 1) * down + reach;
    for (int64_t j = 0; j < s.k[2]; ++j)
      column_.push_back(j * s.dilation[2] % stride * part_ + j * s.dilation[2] / stride);
  }

  /// The rows that `count` rows of windows from `first` on read.
  PlaneRows padded(const float* plane, int64_t row_step, int64_t first, int64_t count,
                   Local& l) const {
    const ConvShape& s = *s_;
    const bool to_x = op_ == Op::ConvGradInput;
    const int64_t down = to_x ? 1 : s.stride[1], across = to_x ? 1 : s.stride[2];
    const int64_t seen = (out_[1] - 1) * across + s.dilation[2] * (s.k[2] - 1) + 1 - pad_[1];
    const int64_t columns = std::clamp<int64_t>(seen, 0, in_[1]);
    const int64_t rows = (count - 1) * down + s.dilation[1] * (s.k[1] - 1) + 1;
    for (int64_t r = 0; r < rows; ++r) {
      const int64_t from = first * down + r - pad_[0];
      float* to = l.rows.data() + r * pitch_;
      if (from < 0 || from >= in_[0])
        std::fill_n(to, pitch_, 0.0f);
      else
        depthwise_simd().spread(plane + from * row_step, columns, pad_[1], across, part_, to);
    }
    return {l.rows.data(),
            down * pitch_,
            s.dilation[1] * pitch_,
            column_.data(),
            static_cast<int>(s.k[1]),
            static_cast<int>(s.k[2]),
            count,
            out_[1]};
  }

  static int64_t at(const ConvShape::Place& p, int64_t n, int64_t c) {
    return p.offset + n * p.outer + c * p.channel;
  }

  void convolve_plane(void* const* buffers, int64_t plane, Local& l) const {
    const ConvShape& s = *s_;
    const bool to_x = op_ == Op::ConvGradInput;
    const int64_t n = plane / s.C, c = plane % s.C;
    const ConvShape::Place &in = to_x ? s.py : s.px, &out = to_x ? s.px : s.py;
    const auto* x = static_cast<const float*>(buffers[to_x ? s.iy : s.ix]) + at(in, n, c);
    const auto* w = static_cast<const float*>(buffers[s.iw]) + s.pw.offset + c * s.pw.outer;
    auto* y = static_cast<float*>(buffers[0]) + at(out, n, c);
    for (int64_t i = 0; i < s.k[1]; ++i)
      for (int64_t j = 0; j < s.k[2]; ++j) {
        const int64_t k = i * s.k[2] + j;
        l.weight[static_cast<size_t>(to_x ? s.ks() - 1 - k : k)] =
            w[i * s.pw.dim[1] + j * s.pw.dim[2]];
      }
    const float bias =
        has_bias_ ? static_cast<const float*>(buffers[3])[bias_ + c * bias_step_] : 0.0f;
    for (int64_t r = 0; r < out_[0]; r += piece_) {
      const PlaneRows p = padded(x, in.dim[1], r, std::min(piece_, out_[0] - r), l);
      depthwise_simd().forward(p, l.weight.data(), bias, relu_, y + r * out.dim[1], out.dim[1]);
    }
  }

  void sum_plane(void* const* buffers, int64_t plane, Local& l, float* out) const {
    const ConvShape& s = *s_;
    const int64_t n = plane / s.C, c = plane % s.C;
    const auto* x = static_cast<const float*>(buffers[s.ix]) + at(s.px, n, c);
    const auto* g = static_cast<const float*>(buffers[s.iy]) + at(s.py, n, c);
    std::fill(l.sums.begin(), l.sums.end(), 0.0f);
    for (int64_t r = 0; r < out_[0]; r += piece_) {
      const PlaneRows p = padded(x, s.px.dim[1], r, std::min(piece_, out_[0] - r), l);
      for (int64_t i = 0; i < p.rows; ++i)
        std::copy_n(g + (r + i) * s.py.dim[1], out_[1], l.gradient.data() + i * gradient_pitch_);
      depthwise_simd().grad_weight(p, l.gradient.data(), gradient_pitch_, l.sums.data());
    }
    depthwise_simd().totals(l.sums.data(), s.ks(), out);
  }

  std::unique_ptr<ConvShape> s_;
  Op op_ = Op::Conv;
  bool relu_ = false, has_bias_ = false;
  int64_t bias_ = 0, bias_step_ = 0;
  int64_t in_[2], out_[2], pad_[2];  // of the windows: rows, columns
  int64_t part_ = 0, pitch_ = 0;     // of a padded row: columns of one remainder, all
  int64_t gradient_pitch_ = 0, piece_ = 0, piece_in_ = 0;
  std::vector<int64_t> column_;
};

}  // namespace

const char* depthwise_refuses(const LibrarySpec& spec) { return Depthwise().init(spec); }

std::unique_ptr<CpuExecutable> prepare_depthwise(const LibrarySpec& spec, const char*& why) {
  auto d = std::make_unique<Depthwise>();
  why = d->init(spec);
  return why ? nullptr : std::move(d);
}

}  // namespace ingot::cpu
