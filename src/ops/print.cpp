// Printing: nested brackets, columns of one width, four digits, scientific where the range asks for
// it (PyTorch's rules), only the edges past 1000 elements; then type, shape and device.
#include <cmath>
#include <cstdio>
#include <ostream>

#include "ops/common.h"

namespace ingot {
namespace {

constexpr int64_t kSummarise = 1000;
constexpr int64_t kEdge = 3;
constexpr int kLineWidth = 80;

// How all elements of one tensor are written.
class Format {
 public:
  explicit Format(DType t) : dtype_(t) {}

  // Called for each shown element before the first text is made.
  void see(double f, int64_t i) {
    if (!is_float(dtype_)) {
      width_ = std::max(width_, text(f, i).size());
      return;
    }
    shown_.push_back(f);
    if (!std::isfinite(f) || f == 0) return;
    whole_ = whole_ && f == std::floor(f);
    low_ = std::min(low_, std::fabs(f));
    high_ = std::max(high_, std::fabs(f));
  }
  void decide() {
    if (!is_float(dtype_)) return;
    bool any = high_ > 0;
    scientific_ = any && (high_ / low_ > 1000 || high_ > 1e8 || (!whole_ && low_ < 1e-4));
    for (double f : shown_) width_ = std::max(width_, text(f, 0).size());
  }
  std::string padded(double f, int64_t i) const {
    std::string s = text(f, i);
    return std::string(width_ - std::min(width_, s.size()), ' ') + s;
  }
  size_t width() const { return width_; }

 private:
  std::string text(double f, int64_t i) const {
    if (dtype_ == DType::Bool) return i ? "true" : "false";
    if (!is_float(dtype_)) return std::to_string(i);
    if (std::isnan(f)) return "nan";
    if (std::isinf(f)) return f > 0 ? "inf" : "-inf";
    char buf[64];
    std::snprintf(buf, sizeof buf, scientific_ ? "%.4e" : whole_ ? "%.0f." : "%.4f", f);
    return buf;
  }
  DType dtype_;
  std::vector<double> shown_;
  bool whole_ = true, scientific_ = false;
  double low_ = HUGE_VAL, high_ = 0;
  size_t width_ = 0;
};

class Printer {
 public:
  Printer(const Tensor& x, const SourceLoc& loc)
      : shape_(x.shape()), strides_(row_major(shape_)), format_(x.dtype()) {
    edges_ = shape_.numel() > kSummarise;
    if (is_float(x.dtype()))
      floats_ = x.to_vector<double>(loc);
    else
      ints_ = x.to_vector<int64_t>(loc);
    visit(0, 0);
    format_.decide();
  }
  std::string text() {
    if (shape_.empty()) return element(0);
    std::string s;
    brackets(0, 0, s);
    return s;
  }

 private:
  bool cut(int dim) const { return edges_ && shape_[dim] > 2 * kEdge; }
  double f(int64_t at) const { return floats_.empty() ? 0 : floats_[static_cast<size_t>(at)]; }
  int64_t i(int64_t at) const { return ints_.empty() ? 0 : ints_[static_cast<size_t>(at)]; }
  std::string element(int64_t at) const { return format_.padded(f(at), i(at)); }

  void visit(int dim, int64_t at) {
    if (dim == shape_.size()) {
      format_.see(f(at), i(at));
      return;
    }
    for (int64_t k = 0; k < shape_[dim]; ++k) {
      if (cut(dim) && k == kEdge) k = shape_[dim] - kEdge;
      visit(dim + 1, at + k * strides_[dim]);
    }
  }

  void brackets(int dim, int64_t at, std::string& s) const {
    bool last = dim + 1 == shape_.size();
    std::string indent(static_cast<size_t>(dim) + 1, ' ');
    int64_t per_line = std::max<int64_t>(1, (kLineWidth - static_cast<int64_t>(indent.size())) /
                                                static_cast<int64_t>(format_.width() + 2));
    std::string between =
        "," + std::string(static_cast<size_t>(shape_.size() - 1 - dim), '\n') + indent;
    s += "[";
    int64_t on_line = 0;
    for (int64_t k = 0; k < shape_[dim]; ++k) {
      bool dots = cut(dim) && k == kEdge;
      if (k && last)
        s += on_line >= per_line ? ",\n" + indent : ", ";
      else if (k)
        s += between;
      if (on_line >= per_line) on_line = 0;
      ++on_line;
      if (dots) {
        s += "...";
        k = shape_[dim] - kEdge - 1;
      } else if (last) {
        s += element(at + k * strides_[dim]);
      } else {
        brackets(dim + 1, at + k * strides_[dim], s);
      }
    }
    s += "]";
  }

  Dims shape_, strides_;
  Format format_;
  bool edges_;
  std::vector<double> floats_;
  std::vector<int64_t> ints_;
};

}  // namespace

std::string Tensor::to_string(SourceLoc where) const {
  if (!defined()) return "undefined tensor";
  SourceLoc loc = user_loc(where);
  bool on = grad_enabled();
  set_grad_enabled(false);
  std::string s;
  try {
    const Tensor now = snapshot(loc);
    s = Printer(now, loc).text() + "\n" + describe(now);
  } catch (...) {
    set_grad_enabled(on);
    throw;
  }
  set_grad_enabled(on);
  return s;
}

std::ostream& operator<<(std::ostream& out, const TensorArg& x) {
  return out << x.tensor.to_string(x.loc);
}

}  // namespace ingot
