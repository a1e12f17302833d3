// Channels-last around convolutions. A kernel that wants it (Offer::channels_last) gets the
// operands and results in that order of memory, max pooling's gradients as well; what reads and
// writes them follows by its index maps, at no cost. Values that must keep their own order, leaves
// and what survives the run, are copied in between.
#include <algorithm>

#include "compile/rewrite.h"
#include "runtime/backend.h"

namespace ingot {
namespace {

bool is_conv(const Val& v) {
  return v.op == Op::Conv || v.op == Op::ConvGradInput || v.op == Op::ConvGradWeight;
}

// Strides of `shape` with dim 1 innermost. Dims of size 1 behind the first `rank` have no say.
Dims channels_last(const Dims& shape, int rank) {
  Dims s = Dims::filled(shape.size(), 1);
  int64_t step = shape[1];
  for (int d = rank - 1; d >= 2; --d) {
    s[d] = step;
    step *= shape[d];
  }
  s[0] = step;
  return s;
}

// Are the elements laid out with these strides? Dims of size 1 do not matter: weights of 1 x 1
// windows have every layout.
bool has_layout(const Val& v, const Dims& want) {
  const Dims have = v.stride.empty() ? row_major(v.shape) : v.stride;
  for (int d = 0; d < v.shape.size(); ++d)
    if (v.shape[d] > 1 && have[d] != want[d]) return false;
  return true;
}

// Do the two differ in dims of size 1 at the end alone?
bool only_ones(const Dims& a, const Dims& b) {
  for (int d = 0; d < std::max(a.size(), b.size()); ++d)
    if ((d < a.size() ? a[d] : 1) != (d < b.size() ? b[d] : 1)) return false;
  return true;
}

// The value behind operand u whose order decides u's: only aliases and dims of size 1 at the end
// are between them. -1: there is none.
int value_behind(const Graph& g, int u) {
  for (;;) {
    const Val& v = g.vals[u];
    if (!v.view()) return u;
    if (v.op == Op::Reshape) {
      if (!only_ones(v.shape, g.vals[v.in[0]].shape)) return -1;
    } else if (v.op != Op::Alias) {
      return -1;
    }
    u = v.in[0];
  }
}

// Max pooling's gradient: a fold of single positions, [batch, channels, ...].
bool is_pool_gradient(const Val& v) {
  return v.op == Op::Fold && v.n_in == 2 &&
         v.attrs.as<FoldAttrs>().window.size() == v.shape.size() - 2;
}

// May this value's memory take another order?
bool can_relayout(const Val& v) {
  return (v.compute() || is_conv(v) || v.op == Op::Fold) && v.op != Op::Assign && !v.output &&
         !v.history && v.stride.empty();
}

class Layouts {
 public:
  explicit Layouts(Graph& g) : old_(g) {}

  void run() {
    find_devices();
    now_.resize(old_.vals.size());
    reshaped_.resize(old_.vals.size(), false);
    for (const Val& v : old_.vals)
      if (v.view() && v.op == Op::Reshape &&
          !only_ones(v.shape, old_.vals[static_cast<size_t>(v.in[0])].shape))
        for (int u = v.in[0];; u = old_.vals[static_cast<size_t>(u)].in[0]) {
          reshaped_[static_cast<size_t>(u)] = true;
          if (!old_.vals[static_cast<size_t>(u)].view()) break;
        }
    for (size_t i = 0; i < old_.vals.size(); ++i) add(static_cast<int>(i));
    old_.vals = std::move(out_.vals);
    old_.count_users();
  }

 private:
  void add(int i) {
    Val v = old_.vals[static_cast<size_t>(i)];
    for (int k = 0; k < v.n_in; ++k) v.in[k] = now_[static_cast<size_t>(v.in[k])];
    if (is_conv(v) && v.n_in >= 2 && v.numel() > 0 && wants(v)) {
      for (int k = 0; k < 2; ++k) v.in[k] = in_channels_last(v.in[k]);
      if (v.epilogues.has(Epilogue::Residual))
        v.in[v.n_in - 1] = in_channels_last(v.in[v.n_in - 1]);
      now_[static_cast<size_t>(i)] = result(v);
      return;
    }
    // Its parts are read in rows, whatever else becomes of the values behind them.
    if (v.op == Op::Cat && wants(v))
      for (int k = 0; k < v.n_in; ++k)
        if (const int b = value_behind(out_, v.in[k]);
            b >= 0 && can_relayout(out_.vals[static_cast<size_t>(b)]))
          v.in[k] = copy(v.in[k], {}, -1);
    // Pooling stands between convolutions: its gradient has their layout, and so has what it reads,
    // at no cost.
    if (is_pool_gradient(v) && v.numel() > 0 && wants(v) && can_relayout(v)) {
      for (int k = 0; k < 2; ++k) relayout_if_free(v.in[k]);
      v.stride = channels_last(v.shape, v.shape.size());
    }
    if (is_elementwise(v.op) && v.shape.size() >= 3 && v.numel() > 0 &&
        !reshaped_[static_cast<size_t>(i)] && wants(v) && can_relayout(v) && reads_channels_last(v))
      v.stride = channels_last(v.shape, v.shape.size());
    now_[static_cast<size_t>(i)] = push(v);
  }
  // What is computed from channels-last values, element by element, has their layout if it is
  // stored at all. (Not where a view is taken of it, which might then need a copy.)
  bool reads_channels_last(const Val& v) const {
    for (int k = 0; k < v.n_in; ++k) {
      const int b = out_.vals[static_cast<size_t>(v.in[k])].shape == v.shape
                        ? value_behind(out_, v.in[k])
                        : -1;
      if (b < 0) continue;
      const Val& base = out_.vals[static_cast<size_t>(b)];
      if (base.shape == v.shape && base.stride == channels_last(v.shape, v.shape.size()))
        return true;
    }
    return false;
  }
  void relayout_if_free(int u) {
    const int b = value_behind(out_, u);
    if (b < 0 || !can_relayout(out_.vals[static_cast<size_t>(b)])) return;
    Val& base = out_.vals[static_cast<size_t>(b)];
    const int rank = out_.vals[static_cast<size_t>(u)].shape.size();
    base.stride = channels_last(base.shape, std::min(base.shape.size(), rank));
  }
  // Some convolution on the value's device is run by a kernel that wants channels last.
  bool wants(const Val& v) const {
    return std::count(devices_.begin(), devices_.end(), v.device) > 0;
  }
  void find_devices() {
    for (size_t i = 0; i < old_.vals.size(); ++i) {
      const Val& v = old_.vals[i];
      if (!is_conv(v) || v.n_in < 2 || v.numel() == 0 || wants(v)) continue;
      Backend* backend = backend_for(v.device.type());
      const LibrarySpec call = abstract_call(old_, static_cast<int>(i));
      if (backend && backend->best_offer(call).channels_last) devices_.push_back(v.device);
    }
  }
  int push(const Val& v) {
    out_.vals.push_back(v);
    return static_cast<int>(out_.vals.size()) - 1;
  }

  // The operand with its channels innermost: the value behind it is laid out anew, or a copy is
  // made.
  int in_channels_last(int u) {
    const Dims shape = out_.vals[static_cast<size_t>(u)].shape;
    const int b = value_behind(out_, u);
    if (b >= 0) {
      Val& base = out_.vals[static_cast<size_t>(b)];
      const Dims want = channels_last(base.shape, std::min(base.shape.size(), shape.size()));
      if (base.stride == want) return u;
      if (!can_relayout(base) && has_layout(base, want)) return u;
      if (can_relayout(base)) {
        base.stride = want;
        return u;
      }
    }
    return copy(u, channels_last(shape, shape.size()), -1);
  }
  int copy(int u, const Dims& stride, int node) {
    Val c;
    c.op = Op::Reshape;
    c.dtype = out_.vals[static_cast<size_t>(u)].dtype;
    c.device = out_.vals[static_cast<size_t>(u)].device;
    c.shape = out_.vals[static_cast<size_t>(u)].shape;
    c.n_in = 1;
    c.in[0] = u;
    c.copied = true;
    c.stride = stride;
    c.node = node;
    return push(c);
  }
  // A result that survives is written in its own order by a copy.
  int result(Val v) {
    const Dims want = channels_last(v.shape, v.shape.size());
    if (can_relayout(v)) {
      v.stride = want;
      return push(v);
    }
    if (has_layout(v, want)) return push(v);
    Val kept = v;
    v.output = v.history = false;
    v.node = -1;
    v.stride = want;
    const int c = copy(push(v), {}, kept.node);
    out_.vals[static_cast<size_t>(c)].output = kept.output;
    out_.vals[static_cast<size_t>(c)].history = kept.history;
    return c;
  }

  Graph& old_;
  Graph out_;
  std::vector<int> now_;
  std::vector<bool> reshaped_;
  std::vector<Device> devices_;
};

}  // namespace

void choose_layouts(Graph& g) {
  const bool any = std::any_of(g.vals.begin(), g.vals.end(),
                               [](const Val& v) { return is_conv(v) && v.n_in >= 2; });
  if (any) Layouts(g).run();
}

}  // namespace ingot
