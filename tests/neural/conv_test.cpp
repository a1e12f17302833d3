// Convolutions large enough to be cut into pieces (samples, rows, channels, partial sums) and to be
// done by oneDNN where it is there: against float64, which is Ingot's own code; the same bits with
// any number of threads.
#include <dlfcn.h>
#include <doctest/doctest.h>
#include <ingot/ingot.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "backend/cpu/conv/dnnl/api.h"

using namespace ingot;

namespace {

struct Shape {
  int64_t n, c, size, out, window, stride, pad, groups;
};
const Shape kShapes[] = {
    {1, 16, 30, 32, 3, 1, 1, 1},   // one sample: rows
    {1, 32, 7, 256, 3, 1, 1, 1},   // one sample, few rows: channels
    {2, 3, 29, 20, 7, 2, 3, 1},    // few channels, ragged blocks
    {12, 24, 9, 40, 3, 2, 0, 1},   // samples
    {8, 160, 4, 192, 3, 1, 1, 1},  // a weight large beside its activations
    {9, 32, 8, 32, 3, 1, 1, 32},   // depthwise
    {6, 32, 8, 64, 1, 1, 0, 4},    // groups of pointwise
    {3, 5, 30, 5, 3, 1, 1, 5},     // depthwise in long rows: a channel by itself
    {2, 4, 33, 4, 5, 2, 2, 4},
    {2, 6, 20, 6, 7, 1, 3, 6},
    {1, 8, 130, 8, 3, 2, 1, 8},  // in pieces
    {2, 3, 40, 3, 4, 1, 0, 3},
    {1, 2, 13, 2, 1, 1, 0, 2},
    {2, 3, 45, 64, 7, 2, 3, 1},  // images
    {1, 1, 33, 32, 8, 1, 0, 1},
    {3, 4, 50, 96, 5, 3, 2, 1},
    {2, 1, 40, 32, 9, 2, 4, 1},
    {1, 3, 256, 96, 16, 16, 0, 1},  // an image with a weight too large for the kernels of few
                                    // channels
};

std::vector<Tensor> run(const Shape& s, DType t, bool turned) {
  manual_seed(3);
  Tensor x = randn({s.n, s.c, s.size, s.size}),
         w = randn({s.out, s.c / s.groups, s.window, s.window}) * 0.1, b = randn({s.out});
  if (turned) x = x.permute({0, 2, 3, 1}).contiguous().permute({0, 3, 1, 2});
  std::vector<Tensor> leaves{x.to(t), w.to(t), b.to(t)};
  eval(leaves);
  for (Tensor& l : leaves) l = l.detach().requires_grad_();
  Tensor y = conv2d(leaves[0], leaves[1], leaves[2], s.stride, s.pad, 1, s.groups);
  Tensor g =
      (cos(arange(y.numel()).to(float64)) + 0.5).reshape(y.shape()).to(t);  // sums do not cancel
  std::vector<Tensor> r = grad({y}, leaves, {g});
  r.push_back(y);
  for (Tensor& v : r) v = v.detach();
  eval(r);
  return r;
}

}  // namespace

TEST_CASE("convolutions in pieces agree with float64") {
  for (const Shape& s : kShapes)
    for (DType t : {float32, bfloat16})
      for (bool turned : {false, true}) {
        CAPTURE(s.c);
        CAPTURE(s.out);
        CAPTURE(turned);
        std::vector<Tensor> got = run(s, t, turned), want = run(s, float64, false);
        for (size_t i = 0; i < got.size(); ++i) {
          const double off = norm(got[i].to(float64) - want[i]).item<double>(),
                       size = norm(want[i]).item<double>();
          CHECK_MESSAGE(off <= (t == float32 ? 1e-5 : 2e-2) * size,
                        "result " << i << ": off by " << off << " of " << size);
        }
      }
}

TEST_CASE("a window of 1x1 with a stride and few channels agrees with float64") {
  for (int64_t c : {2, 4, 8, 12, 20}) {
    const Shape s{1, c, 64, 16, 1, 2, 0, 1};
    CAPTURE(c);
    const std::vector<Tensor> want = run(s, float64, false), got = run(s, float32, false);
    for (size_t i = 0; i < got.size(); ++i)
      CHECK(norm(got[i].to(float64) - want[i]).item<double>() <=
            1e-5 * norm(want[i]).item<double>());
  }
}

namespace {

/// Zeros that end where a page without access begins (less than a cache line before it).
void* guarded(size_t bytes) {
  constexpr size_t kPage = 4096;
  bytes = (bytes + 63) / 64 * 64;
  const size_t room = (bytes + kPage - 1) / kPage * kPage;
  auto* p = static_cast<char*>(
      mmap(nullptr, room + kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  REQUIRE(p != MAP_FAILED);
  mprotect(p + room, kPage, PROT_NONE);
  return p + room - bytes;
}

const cpu::DnnlApi* dnnl_module() {
  Dl_info info{};
  void (*in_libingot)(uint64_t) = &manual_seed;
  dladdr(reinterpret_cast<void*>(in_libingot), &info);
  const std::string file = info.dli_fname ? info.dli_fname : "";
  void* library =
      dlopen((file.substr(0, file.rfind('/') + 1) + "libingot_dnnl.so").c_str(), RTLD_NOW);
  auto get = library ? reinterpret_cast<const cpu::DnnlApi* (*)()>(dlsym(library, "ingot_dnnl_api"))
                     : nullptr;
  return get ? get() : nullptr;
}

/// Runs what oneDNN offers for a convolution of an image of this side; false when it offers none.
bool run_guarded(const cpu::DnnlApi& api, int32_t kind, int64_t channels, int64_t out,
                 int64_t window, int64_t stride, int64_t side) {
  cpu::DnnlConvDesc d{};
  d.kind = kind;
  d.dims = 2;
  d.N = 1, d.C = channels, d.O = out, d.G = 1;
  for (int i = 0; i < 2; ++i) {
    d.x[i] = side, d.k[i] = window, d.stride[i] = stride, d.dilation[i] = 1;
    d.front[i] = window / 2;
    d.y[i] = (side + 2 * d.front[i] - window) / stride + 1;
    d.behind[i] = (d.y[i] - 1) * stride + window - side - d.front[i];
  }
  void* conv = api.conv_create(&d);
  if (!conv) return false;
  cpu::DnnlBlocking weight{};
  api.conv_weight(conv, &weight);
  const auto size = [](int64_t n) { return static_cast<size_t>(n) * sizeof(float); };
  void *x = guarded(size(d.C * side * side)), *y = guarded(size(d.O * d.y[0] * d.y[1])),
       *w = guarded(static_cast<size_t>(weight.bytes)), *scratch = guarded(api.conv_scratch(conv));
  if (kind == cpu::DnnlConvDesc::Forward)
    api.conv_run(conv, x, w, y, nullptr, scratch);
  else if (kind == cpu::DnnlConvDesc::GradInput)
    api.conv_run(conv, y, w, x, nullptr, scratch);
  else
    api.conv_run(conv, x, y, w, nullptr, scratch);
  return true;
}

}  // namespace

// In a child: where it goes past its memory it ends by a signal.
TEST_CASE("what oneDNN offers stays within its memory") {
  const cpu::DnnlApi* api = dnnl_module();
  if (!api) return;
  for (int32_t kind :
       {cpu::DnnlConvDesc::Forward, cpu::DnnlConvDesc::GradInput, cpu::DnnlConvDesc::GradWeight}) {
    CAPTURE(kind);
    const pid_t child = fork();
    if (child == 0) {
      int made = 0;
      for (int64_t window : {1, 3})
        for (int64_t stride : {1, 2, 3})
          for (int64_t channels : {2, 4, 8, 12, 16, 20, 32, 40})
            for (int64_t out : {16, 20})
              for (int64_t side : {8, 17, 64})
                made += run_guarded(*api, kind, channels, out, window, stride, side);
      _exit(made ? 0 : 1);
    }
    int status = 0;
    REQUIRE(waitpid(child, &status, 0) == child);
    CHECK(status == 0);
  }
}

TEST_CASE("results that go past the caches agree with float64") {
  NoGrad guard;
  manual_seed(6);
  for (const Shape& s : {Shape{8, 3, 224, 64, 7, 2, 3, 1}, Shape{8, 16, 128, 64, 3, 1, 1, 1}}) {
    const Tensor x = randn({s.n, s.c, s.size, s.size}),
                 w = randn({s.out, s.c, s.window, s.window}) * 0.1;
    const Tensor got = conv2d(x, w, {}, s.stride, s.pad),
                 want = conv2d(x.to(float64), w.to(float64), {}, s.stride, s.pad);
    CHECK(norm(got.to(float64) - want).item<double>() <= 1e-6 * norm(want).item<double>());
  }
}

TEST_CASE("images with other sizes, strides and padding in each direction agree with float64") {
  manual_seed(7);
  struct Case {
    Dims x, w;
    PerDim stride, pad;
  };
  for (const Case& c : {Case{{2, 4, 21, 37}, {32, 4, 5, 3}, {1, 2}, {0, 1}},
                        Case{{1, 2, 40, 18}, {32, 2, 4, 7}, {2, 1}, {4, 3}},
                        Case{{3, 2, 5, 70}, {64, 2, 5, 5}, {3, 4}, {2, 0}}}) {
    CAPTURE(c.x[3]);
    std::vector<Tensor> leaves{randn(c.x), randn(c.w), randn({c.w[0]})}, got, want;
    eval(leaves);
    for (DType t : {float32, float64}) {
      std::vector<Tensor> l;
      for (const Tensor& v : leaves) l.push_back(v.to(t).detach().requires_grad_());
      Tensor y = conv2d(l[0], l[1], l[2], c.stride, c.pad);
      std::vector<Tensor>& r = t == float32 ? got : want;
      r = grad({(y * y).sum()}, l);
      r.push_back(y.detach());
      eval(r);
    }
    for (size_t i = 0; i < got.size(); ++i)
      CHECK(norm(got[i].to(float64) - want[i]).item<double>() <=
            1e-5 * norm(want[i]).item<double>());
  }
}

TEST_CASE("a depthwise convolution with dilation, bias and ReLU agrees with float64") {
  manual_seed(4);
  for (int64_t stride : {1, 2, 3})
    for (int64_t dilation : {1, 2, 3}) {
      CAPTURE(stride);
      CAPTURE(dilation);
      std::vector<Tensor> leaves{randn({2, 3, 25, 41}), randn({3, 1, 3, 3}), randn({3})}, got, want;
      eval(leaves);
      for (DType t : {float32, float64}) {
        std::vector<Tensor> l;
        for (const Tensor& v : leaves) l.push_back(v.to(t).detach().requires_grad_());
        Tensor y = relu(conv2d(l[0], l[1], l[2], stride, {2, 1}, dilation, 3));
        std::vector<Tensor>& r = t == float32 ? got : want;
        r = grad({y.sum()}, l);
        r.push_back(y.detach());
        eval(r);
      }
      for (size_t i = 0; i < got.size(); ++i)
        CHECK(norm(got[i].to(float64) - want[i]).item<double>() <=
              1e-5 * norm(want[i]).item<double>());
    }
}

TEST_CASE("max pooling of NaN, infinities and equal elements") {
  const int64_t H = 9, W = 37, OH = 5, OW = 19;
  const float inf = std::numeric_limits<float>::infinity(),
              nan = std::numeric_limits<float>::quiet_NaN();
  std::vector<float> x;
  for (int64_t i = 0; i < H * W; ++i)
    x.push_back(i % 11 == 3               ? nan
                : i % 7 == 1 || i / W < 3 ? -inf
                : i % 13 == 5             ? inf
                                          : static_cast<float>(i * 5 % 4) - 2);
  auto [values, indices] = max_pool2d_with_indices(tensor(x, {1, 1, H, W}), 3, 2, 1);
  const std::vector<float> got = values.to_vector<float>();
  const std::vector<int64_t> at = indices.to_vector<int64_t>();
  REQUIRE(static_cast<int64_t>(got.size()) == OH * OW);
  for (int64_t r = 0; r < OH; ++r)
    for (int64_t c = 0; c < OW; ++c) {
      const int64_t o = r * OW + c;
      float best = -inf;
      int64_t where = -1;
      for (int64_t i = std::max<int64_t>(0, 2 * r - 1); i < std::min(H, 2 * r + 2); ++i)
        for (int64_t j = std::max<int64_t>(0, 2 * c - 1); j < std::min(W, 2 * c + 2); ++j) {
          const float v = x[static_cast<size_t>(i * W + j)];
          if (std::isnan(best) || !(v > best || std::isnan(v))) continue;
          best = v;
          where = i * W + j;
        }
      const float g = got[static_cast<size_t>(o)];
      CAPTURE(o);
      CHECK((std::isnan(best) ? std::isnan(g) : g == best));
      if (where >= 0) CHECK(at[static_cast<size_t>(o)] == where);
    }
}

TEST_CASE("the number of threads changes no bit of a convolution") {
  const int threads = get_num_threads();
  for (const Shape& s : kShapes) {
    set_num_threads(1);
    std::vector<Tensor> one = run(s, float32, false);
    set_num_threads(3);
    std::vector<Tensor> three = run(s, float32, false);
    for (size_t i = 0; i < one.size(); ++i)
      CHECK(one[i].to_vector<float>() == three[i].to_vector<float>());
  }
  set_num_threads(threads);
}

TEST_CASE("max pooling without positions is that with them, NaN and infinities included") {
  NoGrad guard;
  const float inf = std::numeric_limits<float>::infinity(),
              nan = std::numeric_limits<float>::quiet_NaN();
  for (int64_t width : {5, 8, 11, 31, 32, 33, 40, 70, 112})
    for (int64_t window : {2, 3})
      for (int64_t kind : {0, 1, 2}) {  // numbers; with NaN; with infinities
        CAPTURE(width);
        CAPTURE(window);
        CAPTURE(kind);
        std::vector<float> x;
        for (int64_t i = 0; i < 2 * 9 * width; ++i)
          x.push_back(kind == 1 && i % 17 == 4      ? nan
                      : kind == 2 && i * 7 % 19 < 9 ? (i % 2 ? inf : -inf)
                                                    : static_cast<float>(i * 37 % 101) - 60);
        const Tensor in = tensor(x, {1, 2, 9, width});
        const ValuesIndices both = max_pool2d_with_indices(in, window, 2, 1);
        eval({both.values, both.indices});  // together, or nobody would ask for positions
        const std::vector<float> got = max_pool2d(in, window, 2, 1).to_vector<float>(),
                                 want = both.values.to_vector<float>();
        REQUIRE(got.size() == want.size());
        bool same = true;
        for (size_t i = 0; i < got.size(); ++i)
          same = same && (got[i] == want[i] || (std::isnan(got[i]) && std::isnan(want[i])));
        CHECK(same);
      }
}
