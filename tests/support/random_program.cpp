#include "support/random_program.h"

#include <algorithm>
#include <sstream>

#include "graph/recorder.h"

namespace ingot::check {
namespace {

class Program {
 public:
  explicit Program(const ProgramOptions& o)
      : o_(o), choose_(o.seed), data_(o.data_seed * 1000003 + o.seed) {
    result_.dtype = choose_.integer(0, 4) == 0 ? DType::Float32 : DType::Float64;
  }

  ProgramResult run() {
    for (int64_t i = 0, n = choose_.integer(1, 4); i < n; ++i) add_leaf(random_shape());
    for (int64_t i = 0, n = std::min(choose_.integer(4, 26), o_.max_steps); i < n; ++i) step();
    outputs();
    // backward() asks for a run before the next differentiable op; the oracle's programs must stay
    // pending.
    if (!o_.run) Recorder::current().segment_open = false;
    result_.text = text_.str();
    return std::move(result_);
  }

 private:
  // ---- choices

  bool chance(int percent) { return choose_.integer(0, 100) < percent; }
  // Comparisons and ties are decided by the last bit: only float64 programs, where bits agree well
  // enough, have them.
  bool exact() const { return result_.dtype == DType::Float64; }
  const Tensor& pick() {
    size_t n = pool_.size(), k = static_cast<size_t>(choose_.integer(0, static_cast<int64_t>(n)));
    if (chance(50)) k = n - 1 - k % std::min<size_t>(n, 3);  // prefer what is new
    picked_ = k;
    return pool_[k];
  }
  std::string name() const { return "t" + std::to_string(picked_); }
  Dims random_shape() {
    Dims s;
    for (int64_t i = 0, n = choose_.integer(0, 4); i < n; ++i)
      s.push_back(chance(8) ? 1 : choose_.integer(2, 7));
    return s;
  }
  void put(const Tensor& t, const std::string& how) {
    if (t.numel() > 4000) return;
    text_ << "t" << pool_.size() << to_string(t.shape()) << " = " << how << "\n";
    pool_.push_back(t);
  }
  Tensor fresh(const Dims& shape) {
    return random_tensor(shape, result_.dtype, -1.2, 1.2, data_, o_.device);
  }
  Tensor add_leaf(const Dims& shape) {
    Tensor t = fresh(shape);
    if (chance(75)) {
      t.requires_grad_();
      leaves_.push_back(t);
      leaf_names_.push_back("t" + std::to_string(pool_.size()));
    }
    put(t, t.requires_grad() ? "parameter" : "data");
    return t;
  }

  // ---- steps

  void step() {
    using Step = void (Program::*)();
    static const Step kinds[] = {
        &Program::unary,   &Program::unary,     &Program::binary,     &Program::binary,
        &Program::binary,  &Program::movement,  &Program::movement,   &Program::slice,
        &Program::slice,   &Program::reduction, &Program::reduction,  &Program::row,
        &Program::product, &Program::in_place,  &Program::index,      &Program::choice,
        &Program::joined,  &Program::cast,      &Program::read,       &Program::leaf,
        &Program::random,  &Program::elsewhere, &Program::recomputed, &Program::found};
    (this->*kinds[choose_.integer(0, std::ssize(kinds))])();
  }

  void leaf() { add_leaf(random_shape()); }

  void unary() {
    const Tensor x = pick();
    std::string n = name();
    switch (choose_.integer(0, exact() ? 12 : 9)) {
      case 0:
        return put(tanh(x), "tanh(" + n + ")");
      case 1:
        return put(sin(x), "sin(" + n + ")");
      case 2:
        return put(exp(tanh(x)), "exp(tanh(" + n + "))");
      case 3:
        return put(sigmoid(x), "sigmoid(" + n + ")");
      case 4:
        return put(-x, "-" + n);
      case 5:
        return put(x * 0.5 + 0.25, n + " * 0.5 + 0.25");
      case 6:
        return put(rsqrt(x * x + 1.0), "rsqrt(" + n + "^2 + 1)");
      case 7:
        return put(tanh(gelu(x)), "tanh(gelu(" + n + "))");
      case 8:
        return put(log1p(square(tanh(x))), "log1p(tanh(" + n + ")^2)");
      case 9:
        return put(relu(x), "relu(" + n + ")");
      case 10:
        return put(abs(x), "abs(" + n + ")");
      default:
        return put(clamp(x, -0.6, 0.7), "clamp(" + n + ", -0.6, 0.7)");
    }
  }

  // x made to broadcast with y: by what is left of its dims after a mean.
  Tensor fitted(const Tensor& x, const Tensor& y, std::string& n) {
    Dims joint;
    if (broadcast_shapes(x.shape(), y.shape(), joint)) return x;
    Dims last{x.dim() - 1};
    if (x.dim() > 0 && y.dim() > 0) {
      Tensor column = x.mean(-1, true);
      if (broadcast_shapes(column.shape(), y.shape(), joint)) {
        n = "mean(" + n + ", -1, keepdim)";
        return column;
      }
    }
    n = "mean(" + n + ")";
    return x.mean();
  }

  void binary() {
    const Tensor x = pick();
    std::string nx = name();
    const Tensor y0 = pick();
    std::string ny = name();
    Tensor y = fitted(y0, x, ny);
    switch (choose_.integer(0, exact() ? 6 : 4)) {
      case 0:
        return put(x + y, nx + " + " + ny);
      case 1:
        return put(x - y, nx + " - " + ny);
      case 2:
        return put(tanh(x) * tanh(y), "tanh(" + nx + ") * tanh(" + ny + ")");
      case 3:
        return put(x / (y * y + 1.5), nx + " / (" + ny + "^2 + 1.5)");
      case 4:
        return put(maximum(x, y), "maximum(" + nx + ", " + ny + ")");
      default:
        return put(minimum(x, y * 0.9), "minimum(" + nx + ", " + ny + " * 0.9)");
    }
  }

  Dims permutation(int n) {
    Dims p;
    for (int i = 0; i < n; ++i) p.push_back(i);
    for (int i = n - 1; i > 0; --i) std::swap(p[i], p[static_cast<int>(choose_.integer(0, i + 1))]);
    return p;
  }

  // Another shape of as many elements: two neighbours joined, or one dim split.
  Dims reshaped(const Dims& shape) {
    if (shape.empty()) return {1, 1};
    int at = static_cast<int>(choose_.integer(0, shape.size()));
    Dims s = shape;
    if (chance(50) && at + 1 < shape.size()) {
      s[at] *= s[at + 1];
      s.erase(at + 1);
    } else if (shape.size() < 6) {
      int64_t part = s[at] % 2 == 0 ? 2 : s[at] % 3 == 0 ? 3 : 1;
      s[at] /= part;
      s.insert(at, part);
    }
    return s;
  }

  void movement() {
    const Tensor x = pick();
    std::string n = name();
    switch (choose_.integer(0, 5)) {
      case 0: {
        Dims s = reshaped(x.shape());
        return put(x.reshape(s), n + ".reshape" + to_string(s));
      }
      case 1: {
        Dims p = permutation(x.dim());
        return put(x.permute(p), n + ".permute" + to_string(p));
      }
      case 2: {
        if (x.dim() > 5) return;
        int64_t at = choose_.integer(0, x.dim() + 1), times = choose_.integer(1, 4);
        Dims s = x.shape();
        s.insert(static_cast<int>(at), times);
        return put(x.unsqueeze(at).expand(s),
                   n + ".unsqueeze(" + std::to_string(at) + ").expand" + to_string(s));
      }
      case 3: {
        if (x.dim() == 0) return;
        int64_t d = choose_.integer(0, x.dim());
        return put(x.flip(d), n + ".flip(" + std::to_string(d) + ")");
      }
      default: {
        if (x.dim() == 0) return;
        Dims p{choose_.integer(0, 3), choose_.integer(0, 3)};
        return put(pad(x, p, 0.5), "pad(" + n + ", " + to_string(p) + ", 0.5)");
      }
    }
  }

  // A slice of one dim: start, stop and a step that may be negative.
  Slice random_slice(int64_t size, std::string& how) {
    int64_t step = chance(60) ? 1 : chance(50) ? 2 : -choose_.integer(1, 3);
    int64_t a = choose_.integer(0, size), b = choose_.integer(a, size) + 1;
    Slice s = step > 0 ? Slice{a, b, step}
                       : Slice{b - 1, a == 0 ? std::optional<int64_t>{} : a - 1, step};
    how += "[" + std::to_string(*s.start) + ":" + (s.stop ? std::to_string(*s.stop) : "") + ":" +
           std::to_string(step) + "]";
    return s;
  }

  void slice() {
    const Tensor x = pick();
    if (x.dim() == 0 || x.numel() == 0) return;
    std::string how = name();
    int64_t d = choose_.integer(0, x.dim());
    how += " dim " + std::to_string(d) + " ";
    put(x.slice(d, random_slice(x.size(d), how)), how);
  }

  void reduction() {
    const Tensor x = pick();
    if (x.numel() == 0) return;
    std::string n = name();
    std::vector<int64_t> dims;
    for (int d = 0; d < x.dim(); ++d)
      if (chance(50)) dims.push_back(d);
    if (dims.empty() && x.dim() > 0) dims.push_back(x.dim() - 1);
    bool keep = chance(50);
    std::string tail = "(" + n + ", " + to_string(Dims(dims)) + (keep ? ", keepdim)" : ")");
    switch (choose_.integer(0, exact() ? 6 : 4)) {
      case 0:
        return put(sum(x, dims, keep) * 0.25, "0.25 * sum" + tail);
      case 1:
        return put(mean(x, dims, keep), "mean" + tail);
      case 2:
        return dims.empty() ? void() : put(logsumexp(x, dims, keep), "logsumexp" + tail);
      case 3:
        return put(var(x, dims, 0, keep), "var" + tail);
      case 4:
        return put(amax(x, dims, keep), "amax" + tail);
      default:
        return put(amin(x, dims, keep), "amin" + tail);
    }
  }

  void row() {
    const Tensor x = pick();
    if (x.dim() == 0 || x.numel() == 0) return;
    std::string n = name();
    int64_t last = x.size(-1);
    switch (choose_.integer(0, 4)) {
      case 0:
        return put(softmax(x, -1), "softmax(" + n + ", -1)");
      case 1:
        return put(log_softmax(x, 0) * 0.3, "log_softmax(" + n + ", 0) * 0.3");
      case 2:
        return put(layer_norm(x, {last}, {}, {}, 0.1), "layer_norm(" + n + ", eps 0.1)");
      default:
        return put(rms_norm(x, {last}, {}, 0.1), "rms_norm(" + n + ", eps 0.1)");
    }
  }

  void product() {
    const Tensor x = pick();
    std::string n = name();
    if (x.dim() == 0) return;
    double scale = 1.0 / static_cast<double>(x.size(-1));
    if (x.dim() >= 2 && chance(40))
      return put(matmul(x, x.transpose(-1, -2)) * scale, "matmul(" + n + ", " + n + "^T) / k");
    Tensor w = add_leaf({x.size(-1), choose_.integer(1, 6)});
    if (x.dim() == 1 && chance(50)) return;
    put(matmul(x, w) * scale, "matmul(" + n + ", t" + std::to_string(pool_.size() - 1) + ") / k");
  }

  // Writing to a fresh tensor (a parameter must not be written to), whole, by slice or through a
  // view.
  void in_place() {
    const Tensor x = pick();
    std::string n = name();
    Tensor y = x * 0.75;
    std::string how = n + " * 0.75; ";
    const Tensor v = pick();
    std::string nv = name();
    switch (choose_.integer(0, 4)) {
      case 0:
        y += fitted_into(v, y, nv);
        how += "+= " + nv;
        break;
      case 1:
        if (y.dim() > 0 && y.numel() > 0) {
          int64_t d = choose_.integer(0, y.dim());
          how += "dim " + std::to_string(d) + " ";
          y.slice(d, random_slice(y.size(d), how)) *= 2.5;
          how += " *= 2.5";
        }
        break;
      case 2:
        if (y.dim() > 0 && y.numel() > 0) {
          y[choose_.integer(0, y.size(0))] = v.mean();
          how += "[i] = mean(" + nv + ")";
        }
        break;
      default:
        if (y.numel() > 0) {
          y.view(-1)[choose_.integer(0, y.numel())] = 0.125;
          how += ".view(-1)[i] = 0.125";
        }
    }
    put(y, how);
  }
  Tensor fitted_into(const Tensor& v, const Tensor& y, std::string& n) {
    Dims joint;
    if (broadcast_shapes(v.shape(), y.shape(), joint) && joint == y.shape()) return v;
    n = "mean(" + n + ")";
    return v.mean();
  }

  void index() {
    const Tensor x = pick();
    std::string n = name();
    if (x.dim() == 0 || x.numel() == 0) return;
    int64_t d = choose_.integer(0, x.dim());
    Dims s = x.shape();
    if (chance(50)) {
      s[static_cast<int>(d)] = choose_.integer(1, 5);
      Tensor i = random_tensor(s, int64, 0, static_cast<double>(x.size(d)), data_, o_.device);
      return put(gather(x, d, i), "gather(" + n + ", " + std::to_string(d) + ")");
    }
    Tensor i = random_tensor({choose_.integer(1, 6)}, int64, 0, static_cast<double>(x.size(d)),
                             data_, o_.device);
    put(index_select(x, d, i), "index_select(" + n + ", " + std::to_string(d) + ")");
  }

  void choice() {
    const Tensor x = pick();
    std::string n = name();
    const Tensor y0 = pick();
    std::string ny = name();
    Tensor y = fitted(y0, x, ny);
    if (exact())
      return put(where(x > 0.1234567, x, y), "where(" + n + " > 0.1234567, " + n + ", " + ny + ")");
    Tensor mask = random_tensor(x.shape(), bool_, 0, 2, data_, o_.device);
    put(where(mask, x, y), "where(mask, " + n + ", " + ny + ")");
  }

  void joined() {
    const Tensor x = pick();
    std::string n = name();
    if (x.dim() == 0) return;
    int64_t d = choose_.integer(0, x.dim());
    put(cat({x, x * 2.0, tanh(x)}, d),
        "cat(" + n + ", " + n + " * 2, tanh(" + n + "); " + std::to_string(d) + ")");
  }

  void cast() {
    const Tensor x = pick();
    std::string n = name();
    if (exact())
      put(x.to(float32).to(float64), n + ".to(float32).to(float64)");
    else
      put((x.to(float64) * 1.5).to(float32), "(" + n + ".to(float64) * 1.5).to(float32)");
  }

  void random() {
    const Tensor x = pick();
    std::string n = name();
    Generator g(static_cast<uint64_t>(choose_.integer(0, 1000)));
    if (chance(50)) return put(dropout(x, 0.3, true, g), "dropout(" + n + ", 0.3)");
    put(x + rand(x.shape(), {x.dtype(), x.device()}, g) * 0.1, n + " + 0.1 * rand");
  }

  // Through another device's memory.
  void elsewhere() {
    const Tensor x = pick();
    std::string n = name();
    put(tanh(x.to("cpu:1") * 1.5).to(o_.device), "tanh(" + n + ".to(cpu:1) * 1.5).to(back)");
  }

  void recomputed() {
    const Tensor x = pick();
    std::string n = name();
    if (chance(30))
      return put(x.detach() * 0.5 + x * 0.25, n + ".detach() * 0.5 + " + n + " * 0.25");
    auto block = [](const std::vector<Tensor>& in) { return sin(tanh(in[0]) * in[0]) + in[0]; };
    put(checkpoint(block, {x}), "checkpoint(sin(tanh(x) * x) + x, " + n + ")");
  }

  // An index that is computed, not given.
  void found() {
    const Tensor x = pick();
    std::string n = name();
    if (x.dim() == 0 || x.numel() == 0 || !exact()) return;
    int64_t d = choose_.integer(0, x.dim());
    put(gather(x * 0.5, d, argmax(x, d, true)),
        "gather(" + n + " * 0.5, argmax(" + n + "), " + std::to_string(d) + ")");
  }

  // Something is wanted before the end: later steps continue from a computed value.
  void read() {
    const Tensor x = pick();
    std::string n = name();
    text_ << "read " << n << "\n";
    keep(x, n);
  }

  // ---- results

  void keep(const Tensor& t, const std::string& n) {
    result_.names.push_back(n);
    result_.values.push_back(o_.run ? computed(t) : expected(t));
  }

  void outputs() {
    std::vector<Tensor> last;
    std::vector<std::string> last_names;
    for (int64_t i = 0, n = choose_.integer(1, 4); i < n; ++i) {
      last.push_back(pick());
      last_names.push_back(name());
    }
    Tensor total = weighted_sum(last) * 0.125;
    std::vector<Tensor> grads;
    if (!leaves_.empty() && total.requires_grad()) {
      if (chance(50)) {
        grads = grad({total}, leaves_, {}, false, false, true);
      } else {
        total.backward();
        for (const Tensor& l : leaves_) grads.push_back(l.grad());
      }
    }
    bool dropped = chance(50);
    if (dropped) pool_.clear();  // nothing but outputs and gradients is named any more
    text_ << "outputs" << (dropped ? ", the rest dropped:" : ":");
    for (size_t i = 0; i < last.size(); ++i) {
      text_ << " " << last_names[i];
      keep(last[i], last_names[i]);
    }
    text_ << "\n";
    for (size_t i = 0; i < grads.size(); ++i)
      if (grads[i].defined()) keep(grads[i], "gradient of " + leaf_names_[i]);
  }

  ProgramOptions o_;
  Numbers choose_, data_;
  ProgramResult result_;
  std::ostringstream text_;
  std::vector<Tensor> pool_, leaves_;
  std::vector<std::string> leaf_names_;
  size_t picked_ = 0;
};

}  // namespace

ProgramResult run_program(const ProgramOptions& options) { return Program(options).run(); }

}  // namespace ingot::check
