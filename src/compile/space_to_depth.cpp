// Pictures have three channels, and tensor cores work on eight at a time: the first convolution of
// a network would leave most of them idle. With a stride of 2 its windows step from one block of 2
// x 2 pixels to the next, so a block's pixels can be channels: [N, 3, H, W] becomes [N, 16, H/2,
// W/2] (a fourth channel is zero) and the window of 7 x 7 one of 4 x 4 with stride 1, with a row
// and a column of zeros: in front where the padding is odd, so that blocks begin at even pixels,
// else at the end. The sums have the same terms, and zeros. The weight's gradient is taken apart
// the same way. All of this is views; what is carried out is the copy to channels-last that the
// convolution wants anyway.
#include <algorithm>
#include <array>
#include <map>

#include "compile/conv_passes.h"
#include "runtime/backend.h"

namespace ingot {
namespace {

size_t at(int v) { return static_cast<size_t>(v); }

class Stems {
 public:
  explicit Stems(Graph& g) : old_(g), now_(g.vals.size(), -1) {}

  /// Is v a convolution (or its weight's gradient) that is better done over blocks?
  static bool fits(const Graph& g, const Val& v) {
    if ((v.op != Op::Conv && v.op != Op::ConvGradWeight) || v.n_in < 2 || v.numel() == 0)
      return false;
    if (!is_half(v.dtype) || v.shape.size() != 4 || v.attrs.as<ConvAttrs>().groups != 1)
      return false;
    if (v.history || (v.op == Op::ConvGradWeight && v.output)) return false;
    Backend* b = backend_for(v.device.type());
    if (!b || !b->channels_last()) return false;
    const Plan p(g, v);
    const ConvAttrs& a = v.attrs.as<ConvAttrs>();
    for (int d = 0; d < 2; ++d)
      if (a.stride[d] != 2 || a.dilation[d] != 1 || p.window[d] < 3 || p.behind[d] < 0)
        return false;
    return p.channels <= 4;
  }

  void run() {
    for (size_t i = 0; i < old_.vals.size(); ++i) {
      Val v = old_.vals[i];
      const bool stem = fits(old_, v);
      const Plan p = stem ? Plan(old_, v) : Plan();
      for (int k = 0; k < v.n_in; ++k) v.in[at(k)] = now_[at(v.in[at(k)])];
      now_[i] = !stem ? push(v) : v.op == Op::Conv ? forward(v, p) : gradient(v, p);
    }
    old_.vals = std::move(out_.vals);
    old_.count_users();
  }

 private:
  struct Plan {
    int64_t n = 0, channels = 0, out = 0, padded = 0;  // padded: channels, a power of two
    int64_t window[2], blocks[2], window_blocks[2];    // per dim, in blocks of two
    int64_t front[2], behind[2];                       // zeros around the picture
    int64_t before[2] = {0, 0};                        // zeros in front of the window
    Plan() = default;
    Plan(const Graph& g, const Val& v) {
      const Dims& x = g.vals[at(v.in[0])].shape;
      const Val& other = g.vals[at(v.in[1])];
      const Dims &w = v.op == Op::Conv ? other.shape : v.shape,
                 &y = v.op == Op::Conv ? v.shape : other.shape;
      n = x[0], channels = x[1], out = w[0];
      padded = channels <= 2 ? 2 : 4;
      for (int d = 0; d < 2; ++d) {
        window[d] = w[2 + d];
        before[d] = v.attrs.as<ConvAttrs>().front[d] % 2;
        window_blocks[d] = (before[d] + window[d] + 1) / 2;
        blocks[d] = y[2 + d] + window_blocks[d] - 1;
        front[d] = v.attrs.as<ConvAttrs>().front[d] + before[d];
        behind[d] = 2 * blocks[d] - x[2 + d] - front[d];
      }
    }
  };

  int push(const Val& v) {
    out_.vals.push_back(v);
    return static_cast<int>(out_.vals.size()) - 1;
  }
  int view(Op op, int of, const Dims& shape, Attributes attrs = {}) {
    const Val& from = out_.vals[at(of)];
    Val v;
    v.op = op;
    v.dtype = from.dtype;
    v.device = from.device;
    v.shape = shape;
    v.in[0] = of;
    v.n_in = 1;
    v.node = from.node;
    v.attrs = std::move(attrs);
    return push(v);
  }
  int permuted(int of, const Dims& order) {
    Dims shape;
    for (int64_t d : order) shape.push_back(out_.vals[at(of)].shape[static_cast<int>(d)]);
    return view(Op::Permute, of, shape, PermuteAttrs{order});
  }

  // [A, c, h, w] with zeros around -> [A, 4 c, h / 2, w / 2]
  int by_blocks(int v, const Plan& p, const int64_t front[2], const int64_t blocks[2]) {
    const int64_t a = out_.vals[at(v)].shape[0], c = p.padded;
    v = view(Op::Pad, v, {a, c, 2 * blocks[0], 2 * blocks[1]},
             PadAttrs{{0, 0, front[0], front[1]}});
    v = view(Op::Reshape, v, {a, c, blocks[0], 2, blocks[1], 2});
    v = permuted(v, {0, 1, 3, 5, 2, 4});
    return view(Op::Reshape, v, {a, 4 * c, blocks[0], blocks[1]});
  }
  // Written once, channels last, for the convolution and its weight's gradient.
  int picture(int x, const Plan& p) {
    const std::array<int64_t, 5> key{x, p.front[0], p.front[1], p.blocks[0], p.blocks[1]};
    const auto [it, fresh] = pictures_.try_emplace(key, -1);
    if (!fresh) return it->second;
    const int v = it->second = by_blocks(x, p, p.front, p.blocks);
    const int64_t c = 4 * p.padded, row = p.blocks[1] * c;
    out_.vals[at(v)].copied = true;
    out_.vals[at(v)].stride = {p.blocks[0] * row, 1, row, c};
    return v;
  }

  static ConvAttrs one_step() { return {{1, 1}, {1, 1}, {0, 0}, {0, 0}, 1}; }
  int forward(Val v, const Plan& p) {
    v.in[0] = picture(v.in[0], p);
    v.in[1] = by_blocks(v.in[1], p, p.before, p.window_blocks);
    v.attrs = one_step();
    return push(v);
  }
  int gradient(Val v, const Plan& p) {
    const Dims shape = v.shape;
    const int64_t c = p.padded, h = p.window_blocks[0], w = p.window_blocks[1];
    v.in[0] = picture(v.in[0], p);
    v.attrs = one_step();
    v.shape = {p.out, 4 * c, h, w};
    int g = view(Op::Reshape, push(v), {p.out, c, 2, 2, h, w});
    g = permuted(g, {0, 1, 4, 2, 5, 3});
    g = view(Op::Reshape, g, {p.out, c, 2 * h, 2 * w});
    return view(Op::Slice, g, shape, SliceAttrs{{0, 0, p.before[0], p.before[1]}, {1, 1, 1, 1}});
  }

  Graph& old_;
  Graph out_;
  std::vector<int> now_;
  std::map<std::array<int64_t, 5>, int> pictures_;
};

}  // namespace

void block_stems(Graph& g) {
  const bool any =
      std::any_of(g.vals.begin(), g.vals.end(), [&](const Val& v) { return Stems::fits(g, v); });
  if (any) Stems(g).run();
}

}  // namespace ingot
