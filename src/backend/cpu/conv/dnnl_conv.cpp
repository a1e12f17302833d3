// Convolutions of float32 and bfloat16 by oneDNN (dnnl/api.h). The work is split by sizes alone:
// over samples, then over rows or output channels where there are few samples; a weight's gradient
// over samples (partial sums, added in order) or over output channels. oneDNN sees channels-last
// pieces; operands in other layouts are transposed piece by piece, in the cache.
#include <dlfcn.h>

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <vector>

#include "backend/cpu/conv/conv_parts.h"
#include "backend/cpu/conv/dnnl/api.h"
#include "backend/cpu/conv/dnnl_weights.h"
#include "backend/cpu/library.h"
#include "backend/cpu/support/half.h"
#include "backend/cpu/support/memory.h"
#include "backend/cpu/support/move.h"
#include "backend/cpu/support/threads.h"
#include "base/env.h"
#include "codegen/conv_shape.h"

namespace ingot::cpu {

namespace {

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
int64_t round_up(int64_t a) { return (a + 63) / 64 * 64; }

/// The module beside this library, or nullptr. INGOT_DNNL=0 disables it.
const DnnlApi* load() {
  if (!env::flag("INGOT_DNNL")) return nullptr;
  Dl_info info{};
  std::string folder;
  if (dladdr(reinterpret_cast<void*>(&load), &info) && info.dli_fname) {
    folder = info.dli_fname;
    folder.resize(folder.rfind('/') == std::string::npos ? 0 : folder.rfind('/') + 1);
  }
  void* library = dlopen((folder + "libingot_dnnl.so").c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) library = dlopen("libingot_dnnl.so", RTLD_NOW | RTLD_LOCAL);
  auto get =
      library ? reinterpret_cast<const DnnlApi* (*)()>(dlsym(library, "ingot_dnnl_api")) : nullptr;
  const DnnlApi* api = get ? get() : nullptr;
  return api && api->version == kDnnlApiVersion ? api : nullptr;
}
const DnnlApi* api() {
  static const DnnlApi* a = load();
  return a;
}

/// One primitive; equal ones are shared.
struct Primitive {
  void* handle = nullptr;
  size_t host_bytes = 0;  // its code and what describes it
  DnnlBlocking weight{};
  int64_t scratch = 0;

  Primitive() = default;
  Primitive(const Primitive&) = delete;
  Primitive& operator=(const Primitive&) = delete;
  ~Primitive() {
    if (handle) api()->conv_destroy(handle);
  }
};

/// oneDNN does not say what a primitive holds: the most that was measured over windows, channels,
/// strides and types, with AVX-512.
size_t measured_bytes(const DnnlConvDesc& d) {
  return d.kind == DnnlConvDesc::Forward ? size_t{112} << 10 : size_t{72} << 10;
}

std::shared_ptr<Primitive> primitive_of(const DnnlConvDesc& d) {
  static auto& mutex = *new ForkMutex<ForkOrder::Small>;
  static std::map<std::vector<int64_t>, std::weak_ptr<Primitive>> made;
  std::vector<int64_t> key{d.kind, d.dims, d.bf16, d.bias, d.N, d.C, d.O, d.G};
  for (const int64_t* p : {d.x, d.y, d.k, d.stride, d.dilation, d.front, d.behind})
    key.insert(key.end(), p, p + d.dims);
  std::lock_guard lock(mutex);
  if (auto found = made[key].lock()) return found;
  if (made.size() > 256) std::erase_if(made, [](const auto& m) { return m.second.expired(); });
  auto p = std::make_shared<Primitive>();
  p->handle = api()->conv_create(&d);
  if (!p->handle) return nullptr;
  api()->conv_weight(p->handle, &p->weight);
  p->scratch = static_cast<int64_t>(api()->conv_scratch(p->handle));
  p->host_bytes = measured_bytes(d);
  made[key] = p;
  return p;
}

bool same_blocking(const DnnlBlocking& a, const DnnlBlocking& b) {
  if (a.rank != b.rank || a.blocks != b.blocks || a.bytes != b.bytes) return false;
  for (int i = 0; i < a.rank; ++i)
    if (a.padded[i] != b.padded[i] || a.stride[i] != b.stride[i]) return false;
  for (int i = 0; i < a.blocks; ++i)
    if (a.block[i] != b.block[i] || a.dim[i] != b.dim[i]) return false;
  return true;
}

// ---- Weights

/// Strides of the weight's dims as oneDNN counts them: groups first.
std::vector<int64_t> weight_strides(const ConvShape& s) {
  std::vector<int64_t> r;
  if (s.G > 1) r.push_back(s.O / s.G * s.pw.outer);
  r.push_back(s.pw.outer);
  r.push_back(s.pw.channel);
  for (int d = 3 - s.n; d < 3; ++d) r.push_back(s.pw.dim[d]);
  return r;
}

DnnlConvDesc desc_of(const LibrarySpec& spec, const ConvShape& s) {
  DnnlConvDesc d{};
  d.kind = spec.op == Op::Conv            ? DnnlConvDesc::Forward
           : spec.op == Op::ConvGradInput ? DnnlConvDesc::GradInput
                                          : DnnlConvDesc::GradWeight;
  d.dims = s.n;
  d.bf16 = spec.operands[0].dtype == DType::BFloat16;
  d.bias = spec.has(Epilogue::Bias);
  d.N = s.N, d.C = s.C, d.O = s.O, d.G = s.G;
  for (int i = 0; i < s.n; ++i) {
    const int f = 3 - s.n + i;
    d.x[i] = s.x[f], d.y[i] = s.y[f], d.k[i] = s.k[f], d.stride[i] = s.stride[f],
    d.dilation[i] = s.dilation[f];
    d.front[i] = s.pad[f];
    // oneDNN expects as end padding what the windows reach, which may be less than the padding.
    d.behind[i] = (s.y[f] - 1) * s.stride[f] + s.dilation[f] * (s.k[f] - 1) + 1 - s.x[f] - s.pad[f];
  }
  return d;
}

/// The largest divisor of n that is at most `most`.
int64_t divisor_below(int64_t n, int64_t most) {
  for (int64_t d = std::clamp<int64_t>(most, 1, n); d > 1; --d)
    if (n % d == 0) return d;
  return 1;
}

// ---- Forward and the input's gradient

class DnnlConv final : public CpuExecutable {
 public:
  /// False when oneDNN has nothing fast for it.
  bool init(const LibrarySpec& spec) {
    spec_ = spec;
    s_ = std::make_unique<ConvShape>(spec);
    const ConvShape& s = *s_;
    forward_ = spec.op == Op::Conv;
    in_ = forward_ ? Activation(s, s.px, s.x, s.C) : Activation(s, s.py, s.y, s.O);
    out_ = forward_ ? Activation(s, s.py, s.y, s.O) : Activation(s, s.px, s.x, s.C);
    const DnnlConvDesc whole = desc_of(spec, s);
    const int64_t in_bytes = in_.bytes(all_of(in_, s, s.N, forward_ ? s.C : s.O)),
                  out_bytes = out_.bytes(all_of(out_, s, s.N, forward_ ? s.O : s.C));
    out_.stream_if_large(out_bytes, in_bytes);
    const int64_t per_sample = std::max<int64_t>(1, (in_bytes + out_bytes) / s.N);
    // Enough samples at a time to pay for reading the weight, few enough to stay in the cache.
    const int64_t weight = s.O * (s.C / s.G) * s.ks() * 4,
                  piece = std::max<int64_t>(3 << 19, weight);
    const int64_t samples =
        divisor_below(s.N, std::min(piece / per_sample, ceil_div(s.N, weight > (1 << 20) ? 4 : 8)));
    cut(whole, samples);
    for (Task& t : tasks_) {
      t.primitive = primitive_of(t.desc);
      if (!t.primitive || !same_blocking(t.primitive->weight, tasks_[0].primitive->weight))
        return false;
      local_ = std::max(local_, round_up(in_.bytes(t.in)) + round_up(out_.bytes(t.out)) +
                                    round_up(t.primitive->scratch));
    }
    blocks_ = Blocks(tasks_[0].primitive->weight, weight_strides(s));
    weight_bytes_ = round_up(tasks_[0].primitive->weight.bytes);
    scratch_bytes = static_cast<size_t>(weight_bytes_ * weights_ + 64);
    require_thread_memory(static_cast<size_t>(local_ + 64));
    return true;
  }

  /// A primitive that executables share counts for each: it lives as long as the last of them.
  size_t host_bytes() const override {
    size_t n = sizeof *this + sizeof *s_ + tasks_.capacity() * sizeof(Task) + blocks_.host_bytes();
    std::set<const Primitive*> different;
    for (const Task& t : tasks_)
      if (different.insert(t.primitive.get()).second) n += t.primitive->host_bytes;
    return n;
  }

  void run(void* const* buffers, void* scratch, const RunArgs&) override {
    const ConvShape& s = *s_;
    char* packed = line_aligned(scratch);
    const int64_t es = static_cast<int64_t>(size_of(s.pw.dtype)), pieces = blocks_.pieces(es == 4);
    parallel_for(
        pieces * weights_, std::max<int64_t>(1, pieces * weights_ / 64), [&](int64_t b, int64_t e) {
          for (int64_t u = b; u < e; ++u) {
            char* to = packed + u / pieces * weight_bytes_;
            const char* from = static_cast<const char*>(buffers[s.iw]) +
                               (s.pw.offset + u / pieces * out_channels_ * s.pw.outer) * es;
            if (es == 4)
              blocks_.pack(reinterpret_cast<float*>(to), reinterpret_cast<const float*>(from),
                           u % pieces);
            else
              blocks_.pack(reinterpret_cast<uint16_t*>(to), reinterpret_cast<const uint16_t*>(from),
                           u % pieces);
          }
        });
    parallel_for(static_cast<int64_t>(tasks_.size()), 1, [&](int64_t b, int64_t e) {
      for (int64_t t = b; t < e; ++t) task(tasks_[static_cast<size_t>(t)], buffers, packed);
    });
  }

 private:
  struct Task {
    DnnlConvDesc desc;
    Part in, out;
    int64_t weight = 0;  // which piece of the output channels
    std::shared_ptr<Primitive> primitive;
  };
  static Part all_of(const Activation& a, const ConvShape&, int64_t n, int64_t c) {
    return {0, n, 0, a.rows(), 0, c};
  }

  /// Samples; where there are few of them, also rows of the result, or output channels where rows
  /// are few as well.
  void cut(const DnnlConvDesc& whole, int64_t samples) {
    const ConvShape& s = *s_;
    const int64_t pieces = s.N / samples, rows = out_.rows();
    int64_t row_step = rows, channel_step = forward_ ? s.O : s.C;
    if (forward_ && pieces < 4) {
      const int64_t channel_pieces = s.G == 1 && s.O % 64 == 0 ? std::min<int64_t>(4, s.O / 64) : 1;
      if (rows >= 24 || channel_pieces == 1)
        row_step = std::max<int64_t>(ceil_div(rows, 8), std::min<int64_t>(rows, 4));
      else
        channel_step = s.O / channel_pieces;
      weights_ = channel_step < s.O ? s.O / channel_step : 1;
    }
    out_channels_ = channel_step;
    for (int64_t n = 0; n < s.N; n += samples)
      for (int64_t r = 0; r < rows; r += row_step)
        for (int64_t c = 0; c < (forward_ ? s.O : s.C); c += channel_step) {
          Task t;
          t.desc = whole;
          t.desc.N = samples;
          t.weight = c / channel_step;
          t.in = {n, samples, 0, in_.rows(), 0, forward_ ? s.C : s.O};
          t.out = {n, samples, r, std::min(row_step, rows - r), c, channel_step};
          if (forward_) narrow(t);
          tasks_.push_back(t);
        }
  }
  /// A forward of some rows and channels only.
  void narrow(Task& t) const {
    DnnlConvDesc& d = t.desc;
    d.O = t.out.c;
    if (t.out.r == out_.rows()) return;
    const int64_t first = t.out.r0 * d.stride[0] - d.front[0];
    const int64_t last =
        (t.out.r0 + t.out.r - 1) * d.stride[0] - d.front[0] + d.dilation[0] * (d.k[0] - 1);
    const int64_t begin = std::clamp<int64_t>(first, 0, in_.rows() - 1),
                  end = std::clamp<int64_t>(last + 1, begin + 1, in_.rows());
    t.in.r0 = begin;
    t.in.r = end - begin;
    d.x[0] = t.in.r;
    d.y[0] = t.out.r;
    d.front[0] = begin - first;
    d.behind[0] = last + 1 - end;
  }

  void task(const Task& t, void* const* buffers, char* packed) const {
    const ConvShape& s = *s_;
    char* local = thread_memory(static_cast<size_t>(local_ + 64));
    void *from = buffers[forward_ ? s.ix : s.iy], *to = buffers[0];
    char* in = in_.direct(from, t.in);
    if (!in) {
      in = local;
      in_.gather(in, from, t.in);
      local += round_up(in_.bytes(t.in));
    }
    char* out = out_.direct(to, t.out);
    char* result = out ? out : local;
    if (!out) local += round_up(out_.bytes(t.out));
    const char* bias = nullptr;
    if (spec_.has(Epilogue::Bias)) {
      const OperandSpec& b = spec_.operands[3];
      bias = static_cast<const char*>(buffers[3]) +
             (b.offset + t.out.c0) * static_cast<int64_t>(size_of(b.dtype));
    }
    api()->conv_run(t.primitive->handle, in, packed + t.weight * weight_bytes_, result, bias,
                    local);
    if (!out) out_.scatter(to, result, t.out);
    if (out_.streams()) finish_stream();
  }

  LibrarySpec spec_;
  std::unique_ptr<ConvShape> s_;
  bool forward_ = true;
  Activation in_, out_;
  Blocks blocks_;
  int64_t weight_bytes_ = 0, weights_ = 1, out_channels_ = 0, local_ = 0;
  std::vector<Task> tasks_;
};

// ---- The weight's gradient

class DnnlGradWeight final : public CpuExecutable {
 public:
  bool init(const LibrarySpec& spec) {
    s_ = std::make_unique<ConvShape>(spec);
    const ConvShape& s = *s_;
    x_ = Activation(s, s.px, s.x, s.C);
    y_ = Activation(s, s.py, s.y, s.O);
    DnnlConvDesc d = desc_of(spec, s);
    const int64_t weight = s.O * s.C / s.G * s.ks() * 4, x = x_.bytes({0, 1, 0, x_.rows(), 0, s.C}),
                  y = y_.bytes({0, 1, 0, y_.rows(), 0, s.O});
    by_channel_ = s.G == 1 && s.O % 32 == 0 && weight >= (1 << 20) && s.O >= 128 &&
                  s.N * (x + y) <= 4 * weight;
    if (by_channel_) {
      parts_ = s.O % 64 == 0 && s.O >= 256 ? s.O / 64 : s.O / 32;
      samples_ = s.N;
      d.O = s.O / parts_;
    } else {
      parts_ = divisor_below(s.N, weight >= (1 << 20) ? 4 : 8);
      samples_ = divisor_below(
          s.N / parts_, std::max<int64_t>(3 << 19, 2 * weight) / std::max<int64_t>(1, x + y));
      d.N = samples_;
    }
    primitive_ = primitive_of(d);
    if (!primitive_) return false;
    std::vector<int64_t> strides = weight_strides(s);
    blocks_ = Blocks(primitive_->weight, strides);
    weight_bytes_ = round_up(primitive_->weight.bytes);
    const int64_t samples = by_channel_ ? s.N : samples_;
    x_bytes_ = round_up(x_.bytes({0, samples, 0, x_.rows(), 0, s.C}));
    y_bytes_ = round_up(y_.bytes({0, samples, 0, y_.rows(), 0, d.O}));
    local_ =
        (by_channel_ ? 0 : x_bytes_) + weight_bytes_ + y_bytes_ + round_up(primitive_->scratch);
    require_thread_memory(static_cast<size_t>(local_ + 64));
    scratch_bytes = static_cast<size_t>((by_channel_ ? x_bytes_ : weight_bytes_ * parts_) + 64);
    return true;
  }

  size_t host_bytes() const override {
    return sizeof *this + sizeof *s_ + primitive_->host_bytes + blocks_.host_bytes();
  }

  void run(void* const* buffers, void* scratch, const RunArgs&) override {
    const ConvShape& s = *s_;
    char *partial = line_aligned(scratch), *x = partial;
    if (by_channel_) {
      const Part all{0, s.N, 0, x_.rows(), 0, s.C};
      if (char* there = x_.direct(buffers[s.ix], all))
        x = there;
      else
        parallel_for(s.N, 1, [&](int64_t b, int64_t e) {
          for (int64_t n = b; n < e; ++n)
            x_.gather(x + n * (x_.bytes(all) / s.N), buffers[s.ix], {n, 1, 0, x_.rows(), 0, s.C});
        });
    }
    parallel_for(parts_, 1, [&](int64_t b, int64_t e) {
      for (int64_t p = b; p < e; ++p)
        by_channel_ ? channels(p, buffers, x) : samples(p, buffers, partial);
    });
    if (by_channel_) return;
    const int64_t pieces = blocks_.pieces(s.pw.dtype == DType::Float32);
    parallel_for(pieces, std::max<int64_t>(1, pieces / 64), [&](int64_t b, int64_t e) {
      for (int64_t u = b; u < e; ++u) store(buffers[0], 0, partial, parts_, u);
    });
  }

 private:
  /// All of the sums of some output channels, stored while they are in the cache.
  void channels(int64_t p, void* const* buffers, char* x) const {
    const ConvShape& s = *s_;
    char* local = thread_memory(static_cast<size_t>(local_ + 64));
    const int64_t o = s.O / parts_;
    const Part q{0, s.N, 0, y_.rows(), p * o, o};
    char *y = y_.direct(buffers[s.iy], q), *sum = local + y_bytes_;
    if (!y) y_.gather(y = local, buffers[s.iy], q);
    api()->conv_run(primitive_->handle, x, y, sum, nullptr, sum + weight_bytes_);
    const int64_t pieces = blocks_.pieces(s.pw.dtype == DType::Float32);
    for (int64_t u = 0; u < pieces; ++u) store(buffers[0], p * o, sum, 1, u);
  }

  /// The partial sum of some samples, a few at a time.
  void samples(int64_t p, void* const* buffers, char* partial) const {
    const ConvShape& s = *s_;
    char* local = thread_memory(static_cast<size_t>(local_ + 64));
    char *x_local = local, *y_local = local + x_bytes_, *more = y_local + y_bytes_,
         *rest = more + weight_bytes_;
    auto* sum = reinterpret_cast<float*>(partial + p * weight_bytes_);
    const int64_t each = s.N / parts_;
    for (int64_t n = p * each; n < (p + 1) * each; n += samples_) {
      const Part qx{n, samples_, 0, x_.rows(), 0, s.C}, qy{n, samples_, 0, y_.rows(), 0, s.O};
      char *x = x_.direct(buffers[s.ix], qx), *y = y_.direct(buffers[s.iy], qy);
      if (!x) x_.gather(x = x_local, buffers[s.ix], qx);
      if (!y) y_.gather(y = y_local, buffers[s.iy], qy);
      const bool first = n == p * each;
      api()->conv_run(primitive_->handle, x, y, first ? static_cast<void*>(sum) : more, nullptr,
                      rest);
      if (first) continue;
      const auto* add = reinterpret_cast<const float*>(more);
      for (int64_t i = 0; i < primitive_->weight.bytes / 4; ++i) sum[i] += add[i];
    }
  }

  /// A piece of the weight from output channel o on: the sum of `count` partial ones.
  void store(void* out, int64_t o, const char* partial, int64_t count, int64_t piece) const {
    const ConvShape& s = *s_;
    const int64_t base = s.pw.offset + o * s.pw.outer, step = weight_bytes_ / 4;
    const auto* first = reinterpret_cast<const float*>(partial);
    if (s.pw.dtype == DType::Float32) {
      blocks_.unpack(static_cast<float*>(out) + base, first, count, step, piece);
      return;
    }
    blocks_.each(piece, [&](int64_t from, int64_t to) {
      if (to < 0) return;
      float v = first[from];
      for (int64_t p = 1; p < count; ++p) v += first[from + p * step];
      static_cast<uint16_t*>(out)[base + to] = bf16_from_f32(v);
    });
  }

  std::unique_ptr<ConvShape> s_;
  Activation x_, y_;
  Blocks blocks_;
  std::shared_ptr<Primitive> primitive_;
  bool by_channel_ = false;
  int64_t parts_ = 1, samples_ = 1, weight_bytes_ = 0, x_bytes_ = 0, y_bytes_ = 0, local_ = 0;
};

}  // namespace

const char* dnnl_conv_refuses(const LibrarySpec& spec) {
  const DType t = spec.operands[0].dtype;
  if (!api()) return "the library was not found";
  if (t != DType::Float32 && t != DType::BFloat16) return "it takes float32 and bfloat16 only";
  if (spec.has(Epilogue::Bias) && (spec.op != Op::Conv || spec.operands[3].stride[0] != 1))
    return "the bias is not dense";
  for (int k = 1; k < 3; ++k)
    if (spec.operands[static_cast<size_t>(k)].dtype != t) return "the operands differ in type";
  return nullptr;
}

std::unique_ptr<CpuExecutable> prepare_dnnl_conv(const LibrarySpec& spec, const char*& why) {
  why = "the library has nothing fast for these sizes";
  if (spec.op == Op::ConvGradWeight) {
    auto c = std::make_unique<DnnlGradWeight>();
    return c->init(spec) ? std::move(c) : nullptr;
  }
  auto c = std::make_unique<DnnlConv>();
  return c->init(spec) ? std::move(c) : nullptr;
}

}  // namespace ingot::cpu
