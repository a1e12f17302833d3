// The primitives. Everything else is composed from these, and differentiates by composition.
#pragma once
#include <cstdint>
#include <string_view>

#include "ingot/dtype.h"

namespace ingot {

enum class Op : uint8_t {
  // Sources
  Leaf,    // a value that came with its data
  Const,   // one number (imm), any shape by Expand; 0-d
  Arg,     // a 0-d number that may change from run to run without another plan (imm_f)
  Iota,    // 1-d int64: 0, 1, 2, ...
  Random,  // int32 bits; Philox of generator `gen`, at counter offset imm_i; element i takes word i%4 of
           // counter i/4
  // Movement: index arithmetic, no work of their own
  Reshape,  // row-major order kept
  Permute,  // ext0[i]: which input axis becomes axis i
  Expand,   // same rank, axes of size 1 repeated
  Slice,    // ext0: start, ext1: step (may be negative); out[i] = in[start + i*step]
  Window,   // overlapping windows of the last n dims: [.., L..] -> [.., O.., K..]; out[.., o.., k..] = in[..,
            // o*stride +
            // k*dilation]; ext0: the n strides, ext1: the n dilations
  Pad,      // ext0: elements added in front (sizes say how many behind); imm_f fills
  // Elementwise beside the table
  Cast,
  Where,    // cond(bool), a, b
  Uniform,  // int32 bits -> float32/float64 in [0, 1): (bits >> 8) * 2^-24 for float32, bits * 2^-32 for
            // float64
  // Structure
  Alias,        // same value, another node (detach)
  Fence,        // value of input 0, computed after input 1; no common subexpressions across (recomputation)
  Assign,       // old, new: new, or old when the run failed (written in place when old's buffer can be taken)
  SliceAssign,  // base, value: base with base[start + i*step] = value (ext0, ext1)
  ToDevice,     // copy to this node's device
  // Reductions over the axes in mask; the reduced axes stay with size 1
  Sum,
  Prod,
  Max,  // NaN wins
  Min,
  ArgMax,  // int64; index in the flattened reduced axes; first of equals; NaN wins
  ArgMin,
  // Index
  Gather,      // src, index: out[..., i, ...] = src[..., index[..., i, ...], ...] along axis imm_i; out has
               // index's
               // shape, src the same sizes but for the axis
  ScatterAdd,  // index, value: zeros of this node's shape, then out[..., index, ...] += value along axis
               // imm_i, in
               // order of position: deterministic
  Scatter,  // base, index, value: base, then out[..., index, ...] = f(out[..., index, ...], value) along axis
            // imm_i, in
            // order of position: deterministic; mask is a ScatterMode
  Scan,     // running sum, product, ... along axis imm_i; mask is a ScanKind
  Sort,     // int64: where the first shape[axis] elements along axis imm_i stand in sorted order; mask 1:
            // largest first.
            // Equals keep their order, NaN is the largest
  // Contraction
  Attention,  // q [B, H, T, D], k, v [B, H, S, D], (bias [B|1, H|1, T, S]): softmax(q k^T * imm_f + bias) v;
              // causal when imm_i; Pick 1: the rows'
              // log-sum-exp, float32 [B, H, T]. Recorded only where a backend has it
  AttentionGrad,  // q, k, v, o, gradient of o, log-sum-exp, (bias): gradient of q; Pick 1 and 2: of k and v
  // The steps of an LSTM layer in one direction, against time when imm_i. Of one type but for c and what goes
  // with it (c0, the gradients of h0 and c0), which are float32 where that type has 16 bits. Recorded only
  // where a backend has them
  Lstm,  // z [T, N, 4 H] (the input's part, biases included), h0, c0 [N, H], weight [4 H, H]: h [T, N, H];
         // Pick 1: the gates' values [T, N, 4 H], Pick 2: c [T, N, H]
  LstmGrad,  // gates, c, c0, weight, gradient of h, gradient of the last c: gradient of z; Pick 1 and 2: of
             // h0
             // and c0
  Pick,      // result number imm_i of an op that has several (0 is the op's own value)
  // Convolution over the last n dims: x [N, C, S..], w [O, C / groups, K..], y [N, O, S'..]. ext0: the n
  // strides, then the n dilations; ext1: zeros in front of each dim, then behind; imm_i: groups
  Conv,            // x, w: y
  ConvGradInput,   // y's gradient, w: x's gradient (this node's shape): the transposed convolution
  ConvGradWeight,  // x, y's gradient: w's gradient (this node's shape)
  // Window backwards: value [.., O.., K..] added up into this node's shape [.., L..]. Or value [.., O..]
  // and an integer position [.., O..] in the flattened window that it is added at. ext0: strides, dilations,
  // fronts; ext1: K
  Fold,
  Cat,     // inputs side by side along axis imm_i, at most kCatInputs of them; movement, but with work of its
           // own
  Linalg,  // factorisations and what comes from them, of the last two dims; imm_i: which (LinalgKind).
           // Library calls of the CPU
  Program,  // inputs of many ops that were written down once (graph/program.h), number imm_i; Assign reads
            // its
            // results: old, program, imm_i saying which
  Matmul,   // [batch..., M, K] x [batch..., K, N], same rank, batch sizes equal (Expand before)
// Elementwise table
#define INGOT_EW(E, name, arity, rule, expr, ga, gb) E,
#include "graph/elementwise.def"
#undef INGOT_EW
  Count_
};

/// More parts than this are joined by several Cats.
inline constexpr int kCatInputs = 64;

enum class ScatterMode : uint8_t { Set, Prod, Max, Min };  // Set: the last one stays; NaN wins in Max and Min
/// LogSum: log of the running sum of exp. ArgMax, ArgMin: int64, the place of the extreme so far, the last of
/// equals; NaN wins.
enum class ScanKind : uint8_t { Sum, Prod, LogSum, ArgMax, ArgMin };
/// What Op::Linalg computes; in attrs.i beside flags: kind | flags << 8.
enum class LinalgKind : uint8_t {
  Solve,       // a [.., N, N], b [.., N, K]: x with a x = b. Flag 1: a transposed
  Triangular,  // the same for a triangular a. Flags 1: a transposed, 2: upper, 4: ones on the diagonal
  Inverse,     // a [.., N, N]
  Cholesky,    // a [.., N, N]: lower l with l l^T = a; only a's lower triangle is read
  Slogdet,     // a [.., N, N] -> [.., 2]: sign and logarithm of the absolute value of the determinant
};

enum class TypeRule : uint8_t { Same, Float, Int, Num, Bool };

struct OpInfo {
  const char* name;
  uint8_t arity;  // 255: any
  TypeRule rule;
  bool elementwise;  // of the table, or Cast, Where, Uniform
};
const OpInfo& info(Op op);

inline bool is_movement(Op op) { return op >= Op::Reshape && op <= Op::Pad; }
inline bool is_reduce(Op op) { return op >= Op::Sum && op <= Op::ArgMin; }
inline bool is_elementwise(Op op) { return (op >= Op::Cast && op <= Op::Uniform) || op > Op::Matmul; }

}  // namespace ingot
