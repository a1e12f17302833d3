// Images have three channels, and tensor cores work on eight at a time: the first convolution of a
// network would leave most of them idle. With a stride of 2 its windows step from one block of 2 x
// 2 pixels to the next, so a block's pixels can be channels: [N, 3, H, W] becomes [N, 16, H/2, W/2]
// (a fourth channel is zero) and the window of 7 x 7 one of 4 x 4 with stride 1, with a row and a
// column of zeros: at the front where the padding is odd, so that blocks begin at even pixels, else
// at the end. The sums have the same terms, and zeros. The weight's gradient is taken apart the
// same way. All of this is views; what is carried out is the copy to channels-last that the
// convolution needs anyway.
#include "compile/rewrite.h"
#include "runtime/backend.h"

namespace ingot {
namespace {

struct Blocks {
  int64_t n = 0, channels = 0, out = 0, padded = 0;  // padded: channels, a power of two
  int64_t window[2], blocks[2], window_blocks[2];    // per dim, in blocks of two
  int64_t front[2], behind[2];                       // zeros around the image
  int64_t before[2] = {0, 0};                        // zeros before the window

  Blocks(const Rewriter& r, int call) {
    const Val& v = r[call];
    const Dims& x = r[v.in[0]].shape;
    const Dims &other = r[v.in[1]].shape, &w = v.op == Op::Conv ? other : v.shape,
               &y = v.op == Op::Conv ? v.shape : other;
    const ConvAttrs& a = v.attrs.as<ConvAttrs>();
    n = x[0], channels = x[1], out = w[0];
    padded = channels <= 2 ? 2 : 4;
    for (int d = 0; d < 2; ++d) {
      window[d] = w[2 + d];
      before[d] = a.front[d] % 2;
      window_blocks[d] = (before[d] + window[d] + 1) / 2;
      blocks[d] = y[2 + d] + window_blocks[d] - 1;
      front[d] = a.front[d] + before[d];
      behind[d] = 2 * blocks[d] - x[2 + d] - front[d];
    }
  }
};

/// Is the call better done over blocks?
bool fits(const Rewriter& r, int call) {
  const Val& v = r[call];
  if (v.n_in < 2 || v.numel() == 0 || !is_half(v.dtype) || v.shape.size() != 4) return false;
  const ConvAttrs& a = v.attrs.as<ConvAttrs>();
  if (a.groups != 1 || v.history || (v.op == Op::ConvGradWeight && v.output)) return false;
  Backend* backend = backend_for(v.device.type());
  if (!backend || !backend->best_offer(abstract_call(r.graph(), call)).channels_last) return false;
  const Blocks b(r, call);
  for (int d = 0; d < 2; ++d)
    if (a.stride[d] != 2 || a.dilation[d] != 1 || b.window[d] < 3 || b.behind[d] < 0) return false;
  return b.channels <= 4;
}

int permuted(Rewriter& r, int of, const Dims& order) {
  Dims shape;
  for (int64_t d : order) shape.push_back(r[of].shape[static_cast<int>(d)]);
  return r.view(Op::Permute, of, shape, PermuteAttrs{order});
}

// [A, c, h, w] with zeros around -> [A, 4 c, h / 2, w / 2]
int by_blocks(Rewriter& r, int v, const Blocks& b, const int64_t front[2],
              const int64_t blocks[2]) {
  const int64_t a = r[v].shape[0], c = b.padded;
  v = r.view(Op::Pad, v, {a, c, 2 * blocks[0], 2 * blocks[1]},
             PadAttrs{{0, 0, front[0], front[1]}});
  v = r.view(Op::Reshape, v, {a, c, blocks[0], 2, blocks[1], 2});
  v = permuted(r, v, {0, 1, 3, 5, 2, 4});
  return r.view(Op::Reshape, v, {a, 4 * c, blocks[0], blocks[1]});
}

// Written once, channels last, for the convolution and its weight's gradient.
int image(Rewriter& r, int x, const Blocks& b) {
  int& made = r.shared({x, b.front[0], b.front[1], b.blocks[0], b.blocks[1]});
  if (made >= 0) return made;
  made = by_blocks(r, x, b, b.front, b.blocks);
  const int64_t c = 4 * b.padded, row = b.blocks[1] * c;
  r.edit(made).copied = true;
  r.edit(made).stride = {b.blocks[0] * row, 1, row, c};
  return made;
}

const ConvAttrs kOneStep{{1, 1}, {1, 1}, {0, 0}, {0, 0}, 1};

bool forward(Rewriter& r, const Match& m) {
  const Blocks b(r, m.root);
  r.set_input(m.root, 0, image(r, r[m.root].in[0], b));
  r.set_input(m.root, 1, by_blocks(r, r[m.root].in[1], b, b.before, b.window_blocks));
  r.edit(m.root).attrs = kOneStep;
  return true;
}

bool gradient(Rewriter& r, const Match& m) {
  const Blocks b(r, m.root);
  const int64_t c = b.padded, h = b.window_blocks[0], w = b.window_blocks[1];
  const int x = image(r, r[m.root].in[0], b);
  int g = r.compute(Op::ConvGradWeight, r[m.root].dtype, {b.out, 4 * c, h, w}, {x, r[m.root].in[1]},
                    kOneStep);
  g = r.view(Op::Reshape, g, {b.out, c, 2, 2, h, w});
  g = permuted(r, g, {0, 1, 4, 2, 5, 3});
  g = r.view(Op::Reshape, g, {b.out, c, 2 * h, 2 * w});
  r.become(m.root, Op::Slice, {g}, SliceAttrs{{0, 0, b.before[0], b.before[1]}, {1, 1, 1, 1}});
  return true;
}

const Rule kRules[] = {
    {"convolution of an image over blocks of pixels", Pattern(Op::Conv).where(fits), forward},
    {"weight's gradient over blocks of pixels", Pattern(Op::ConvGradWeight).where(fits), gradient},
};

}  // namespace

std::span<const Rule> space_to_depth_rules() { return kRules; }
void use_space_to_depth(Graph& g) { rewrite(g, kRules); }

}  // namespace ingot
