// See recurrent.h. The product gives float32 whatever the operands' type, so that a step rounds h
// alone. It is described and measured once; every step calls it with other addresses.
#include "backend/cuda/cublaslt/recurrent.h"

#include <algorithm>
#include <memory>

#include "backend/cuda/cublaslt/matmul.h"
#include "backend/cuda/kernels/kernels.h"
#include "backend/cuda/offers.h"
#include "backend/cuda/runtime/gpu.h"
#include "ingot/error.h"

namespace ingot::cuda {
namespace {

constexpr int64_t kBytes32 = 4;

struct Cell {
  Op forward, backward;
  bool relu;
  CudaKernel (*kernel)(bool backward, DType type, int64_t rows, int64_t width, int64_t row_stride,
                       int lanes);
};
constexpr Cell kCells[] = {
    {Op::Lstm, Op::LstmGrad, false, lstm_cell},
    {Op::Gru, Op::GruGrad, false, gru_cell},
    {Op::Rnn, Op::RnnGrad, false, tanh_cell},
    {Op::Rnn, Op::RnnGrad, true, relu_cell},
};

const Cell* find_cell(const LibrarySpec& s) {
  for (const Cell& c : kCells)
    if ((c.forward == s.op || c.backward == s.op) && c.relu == s.attrs.as<RecurrentAttrs>().relu)
      return &c;
  return nullptr;
}

/// Sizes and operands of a call; -1: not written.
struct Call {
  explicit Call(const LibrarySpec& s) : spec(s), backward(is_recurrent_grad(s.op)) {
    int next = 1;
    if (s.gives(1)) side1 = next++;
    if (s.gives(2)) side2 = next++;
    first = s.written;
    const Dims& w = at(first + 1).shape;
    T = s.operands[0].shape[0], N = s.operands[0].shape[1], H = w[1], gates = w[0] / H;
    size = static_cast<int64_t>(size_of(s.operands[0].dtype));
  }
  const OperandSpec& at(int operand) const { return spec.operands[static_cast<size_t>(operand)]; }
  /// The one whose rows need not be dense: z, or the gradient of h.
  int loose() const { return backward ? first + 2 : first; }
  /// The step that comes i-th.
  int64_t step(int64_t i) const { return spec.attrs.as<RecurrentAttrs>().reverse ? T - 1 - i : i; }
  /// Has it a cell state beside h?
  bool has_c() const { return spec.op == Op::Lstm || spec.op == Op::LstmGrad; }
  /// Backward: is what the product reads stored apart from the gradients that are the result?
  bool apart() const { return at(first).shape[2] != gates * H; }

  const LibrarySpec& spec;
  bool backward;
  int side1 = -1, side2 = -1, first = 0;
  int64_t T = 0, N = 0, H = 0, gates = 0, size = 0;
};

size_t rounded(int64_t bytes) { return (static_cast<size_t>(bytes) + 255) / 256 * 256; }

class Recurrent : public CudaExecutable {
 public:
  Recurrent(Gpu& gpu, const LibrarySpec& spec) : gpu_(gpu), spec_(spec), c_(spec_) {
    const int64_t G = c_.gates * c_.H, in = c_.backward ? G : c_.H, out = c_.backward ? c_.H : G;
    const DType type = spec_.operands[0].dtype;
    LibrarySpec m;
    m.op = Op::Matmul;
    m.tf32 = spec_.tf32;
    m.holds_back_next = true;
    moved_ = c_.N * in;
    // Every step's operand begins this far behind the one before it: the offset says how it is
    // aligned.
    m.operands = {{DType::Float32, Dims{c_.N, out}, Dims{out, 1}, 0},
                  {type, Dims{c_.N, in}, Dims{in, 1}, moved_},
                  {type, Dims{in, out}, c_.backward ? Dims{c_.H, 1} : Dims{1, c_.H},
                   c_.at(c_.first + 1).offset}};
    product_.reset(static_cast<CudaExecutable*>(prepare_library(gpu, m).release()));
    cell_ = own(find_cell(spec_)->kernel(c_.backward, type, c_.N, c_.H, loose_row(), lanes()));
    product_bytes_ = rounded(c_.N * out * kBytes32);
    state_bytes_ = rounded(c_.N * c_.H * kBytes32);
    left_bytes_ = c_.backward && c_.apart() ? rounded(c_.N * in * c_.size) : 0;
    scratch_bytes = product_bytes_ + state_bytes_ + left_bytes_ + product_->scratch_bytes;
    launches = static_cast<int>(c_.T) * (product_->launches + cell_->launches);
    if (left_bytes_ > 0 && c_.side1 > 0) {
      first_state_ = own(gru_first_state(c_.N * c_.H));
      launches += first_state_->launches;
    }
  }

  void ready() override {
    product_->ready();
    cell_->ready();
    if (first_state_) first_state_->ready();
  }
  void enqueue(const LaunchSite& site) override { c_.backward ? steps_back(site) : steps(site); }
  bool ends_with_kernel() const override { return true; }

 private:
  std::unique_ptr<KernelExecutable> own(CudaKernel k) const {
    auto module = gpu_.modules->get(k.text);
    return std::make_unique<KernelExecutable>(k.text, std::move(k.launch), 1, 8, std::move(module));
  }
  int64_t loose_row() const { return c_.N == 1 ? 0 : c_.at(c_.loose()).stride[1]; }
  /// Elements that a thread does at once: as many as alignment allows, unless too few threads were
  /// left.
  int lanes() const {
    const OperandSpec& o = c_.at(c_.loose());
    const int64_t step = c_.T == 1 ? 0 : o.stride[0];
    for (int n : {4, 2}) {
      bool fits = c_.H % n == 0 && loose_row() % n == 0 && step % n == 0;
      for (const OperandSpec& x : spec_.operands) fits = fits && x.offset % n == 0;
      if (fits && (n == 2 || c_.N * c_.H / n >= int64_t{gpu_.multiprocessors} * 512)) return n;
    }
    return 1;
  }

  char* operand(const LaunchSite& site, int k) const {
    const OperandSpec& o = c_.at(k);
    return static_cast<char*>(site.address(k)) + o.offset * static_cast<int64_t>(size_of(o.dtype));
  }
  static int64_t word(const void* p) { return reinterpret_cast<int64_t>(p); }

  /// The first product of a call comes after what the site says, the others after a cell.
  void multiply(const LaunchSite& site, void* out, char* left, bool after_cell) const {
    LaunchSite s = site;
    const int64_t pointers[] = {word(out), word(left - moved_ * c_.size),
                                site.pointers[static_cast<size_t>(c_.first) + 1]};
    s.pointers = pointers;
    s.header.scratch =
        static_cast<char*>(site.header.scratch) + product_bytes_ + state_bytes_ + left_bytes_;
    s.after_kernel = after_cell ? early_wanted(gpu_) : site.after_kernel;
    product_->enqueue(s);
  }
  void launch(const LaunchSite& site, CudaExecutable& launched, const int64_t (&pointers)[8],
              bool after_product) const {
    LaunchSite s = site;
    s.pointers = pointers;
    s.after_kernel = after_product && product_->ends_with_kernel() && early_wanted(gpu_);
    launched.enqueue(s);
  }

  void steps(const LaunchSite& site) const {
    const bool has_c = c_.has_c();
    const int rest = c_.first + 3;  // c0, or a bias
    const bool has_bias = !has_c && rest < static_cast<int>(spec_.operands.size());
    char *z = operand(site, c_.first), *h = operand(site, 0),
         *weighed = static_cast<char*>(site.header.scratch),
         *gates = c_.side1 > 0 ? operand(site, c_.side1) : nullptr,
         *kept = c_.side2 > 0 ? operand(site, c_.side2) : nullptr,
         *state = weighed + product_bytes_, *bias = has_bias ? operand(site, rest) : nullptr;
    const int64_t one = c_.N * c_.H, z_step = c_.at(c_.first).stride[0];
    char *h_before = operand(site, c_.first + 2), *c_before = has_c ? operand(site, rest) : nullptr;
    for (int64_t i = 0; i < c_.T; ++i) {
      const int64_t t = c_.step(i);
      char* h_now = h + t * one * c_.size;
      char* c_now = !has_c ? nullptr : kept ? kept + t * one * kBytes32 : state;
      multiply(site, weighed, h_before, i > 0);
      launch(site, *cell_,
             {word(z + t * z_step * c_.size), word(weighed), word(has_c ? c_before : h_before),
              word(h_now), word(gates ? gates + kKeptPerUnit * t * one * c_.size : nullptr),
              word(c_now), word(bias), 0},
             true);
      h_before = h_now;
      c_before = c_now;
    }
  }

  void steps_back(const LaunchSite& site) const {
    const bool has_c = c_.has_c(), has_states = c_.apart();
    char *grad = operand(site, 0), *kept = operand(site, c_.first),
         *top = operand(site, c_.first + 2), *weighed = static_cast<char*>(site.header.scratch),
         *state = weighed + product_bytes_, *left = state + state_bytes_;
    // c and c0, or h and h0
    char *states = has_c        ? operand(site, c_.first + 4)
                   : has_states ? operand(site, c_.first + 3)
                                : nullptr,
         *first = has_c        ? operand(site, c_.first + 5)
                  : has_states ? operand(site, c_.first + 4)
                               : nullptr;
    const int64_t one = c_.N * c_.H, top_step = c_.at(c_.first + 2).stride[0],
                  row = c_.at(c_.first).shape[2] / c_.H * one * c_.size,
                  state_size = has_c ? kBytes32 : c_.size;
    char* passed = has_c ? operand(site, c_.first + 3) : nullptr;
    for (int64_t i = c_.T - 1; i >= 0; --i) {
      const int64_t t = c_.step(i);
      const bool last = i == c_.T - 1;
      char* before = !states  ? nullptr
                     : i == 0 ? first
                              : states + c_.step(i - 1) * one * state_size;
      char* pass_on = i == 0 && c_.side2 > 0 ? operand(site, c_.side2) : state;
      char* grad_now = grad + t * row;
      char* of_product = has_states && !has_c ? left : grad_now;
      launch(site, *cell_,
             {word(top + t * top_step * c_.size), word(last ? nullptr : weighed),
              word(kept + t * row), word(has_c ? states + t * one * kBytes32 : of_product),
              word(before), word(passed), word(grad_now), word(pass_on)},
             !last);
      passed = pass_on;
      if (i > 0 || first_state_)
        multiply(site, weighed, of_product, true);
      else if (c_.side1 > 0)
        multiply(site, operand(site, c_.side1), of_product, true);
    }
    if (first_state_)
      launch(site, *first_state_,
             {word(weighed), word(state), word(operand(site, c_.side1)), 0, 0, 0, 0, 0}, true);
  }

  Gpu& gpu_;
  LibrarySpec spec_;
  Call c_;
  int64_t moved_ = 0;  // elements between two steps' left operands
  std::unique_ptr<CudaExecutable> product_;
  std::unique_ptr<KernelExecutable> cell_, first_state_;
  size_t product_bytes_ = 0, state_bytes_ = 0, left_bytes_ = 0;
};

}  // namespace

const char* recurrent_refuses(const LibrarySpec& spec) {
  const DType type = spec.operands[0].dtype;
  if (!find_cell(spec)) return "it has no such cell";
  if (type != DType::Float32 && !is_half(type)) return "it takes float32 and 16-bit types";
  const int64_t rows = spec.operands[0].shape[1], units = spec.operands[0].shape[2];
  return 4 * rows * units < (int64_t{1} << 31) ? nullptr : "positions would not fit 32 bits";
}

std::unique_ptr<Executable> prepare_recurrent(Gpu& gpu, const LibrarySpec& spec, const char*&) {
  return std::make_unique<Recurrent>(gpu, spec);
}

}  // namespace ingot::cuda
