// Functions of networks, composed from primitives so that they fuse and differentiate by
// composition. 16-bit floats compute in float32: one cast in, one cast back.
#include <cmath>
#include <limits>

#include "ingot/amp.h"
#include "ops/autocast.h"
#include "ops/cached_attention.h"
#include "ops/common.h"
#include "ops/composed.h"

namespace ingot {
namespace {

Node* floating(const Tensor& x, const char* op, const SourceLoc& loc) {
  NodeRef n = node_of(x, op, loc);
  if (!is_float(n->dtype))
    fail(ErrorKind::DType, op, "needs a floating type, not " + describe(x), loc,
         "convert with x.to(float32)");
  return n;
}

}  // namespace

// ---- Activations

Tensor gelu(const Tensor& x, std::string_view approximate, SourceLoc where) {
  SourceLoc loc = user_loc(where);
  LocScope scope(loc);
  Node* n = floating(x, "gelu", loc);
  if (approximate != "none" && approximate != "tanh")
    fail(ErrorKind::Value, "gelu", "approximate is \"" + std::string(approximate) + "\"", loc,
         "use \"none\" or \"tanh\"");
  const bool by_tanh = approximate == "tanh";
  return composite(
      by_tanh ? "gelu_tanh" : "gelu", {by_tanh}, {x}, n->shape, n->dtype,
      [](const CompositeArgs& a) {
        Tensor f = a[0].to(compute_type(a[0].dtype()));
        Tensor inner = a.flag(0) ? tanh((f + f * f * f * 0.044715) * 0.7978845608028654)
                                 : erf(f * 0.7071067811865476);
        return (f * 0.5 * (inner + 1.0)).to(a.result);
      },
      loc);
}

Tensor silu(const Tensor& x, SourceLoc where) {
  SourceLoc loc = user_loc(where);
  LocScope scope(loc);
  Node* n = floating(x, "silu", loc);
  Tensor f = x.to(compute_type(n->dtype));
  return (f * sigmoid(f)).to(n->dtype);
}

Tensor softplus(const Tensor& x, double beta, double threshold, SourceLoc place) {
  SourceLoc loc = user_loc(place);
  LocScope scope(loc);
  Node* n = floating(x, "softplus", loc);
  Tensor f = x.to(compute_type(n->dtype)), scaled = f * beta, straight = scaled > threshold;
  // What is straight never meets exp, whose infinity would make a NaN of its gradient.
  Tensor bent = log1p(exp(where(straight, 0.0, scaled))) / beta;
  return where(straight, f, bent).to(raised(n->dtype));
}

Tensor leaky_relu(const Tensor& x, double negative_slope, SourceLoc place) {
  SourceLoc loc = user_loc(place);
  LocScope scope(loc);
  floating(x, "leaky_relu", loc);
  return where(x > 0.0, x, x * negative_slope);
}

// ---- Softmax

Tensor softmax(const Tensor& x, int64_t dim, SourceLoc where) {
  SourceLoc loc = user_loc(where);
  LocScope scope(loc);
  Node* n = floating(x, "softmax", loc);
  int d = wrap_dim(dim, n, "softmax", loc);
  if (n->numel() == 0) return tensor_of(NodeRef(n));
  return composite(
      "softmax", {d}, {x}, n->shape, raised(n->dtype),
      [](const CompositeArgs& a) {
        Tensor f = a[0].to(compute_type(a[0].dtype()));
        Tensor e = exp(f - f.detach().amax(a.i(0), true));
        return (e * e.sum(a.i(0), true).reciprocal()).to(a.result);  // one division a row
      },
      loc);
}

Tensor log_softmax(const Tensor& x, int64_t dim, SourceLoc where) {
  SourceLoc loc = user_loc(where);
  LocScope scope(loc);
  Node* n = floating(x, "log_softmax", loc);
  int d = wrap_dim(dim, n, "log_softmax", loc);
  if (n->numel() == 0) return tensor_of(NodeRef(n));
  return composite(
      "log_softmax", {d}, {x}, n->shape, raised(n->dtype),
      [](const CompositeArgs& a) {
        Tensor f = a[0].to(compute_type(a[0].dtype()));
        Tensor shifted = f - f.detach().amax(a.i(0), true);
        return (shifted - log(exp(shifted).sum(a.i(0), true))).to(a.result);
      },
      loc);
}

// ---- Norms

namespace {

Axes last_axes(const Tensor& x, int64_t count) {
  Dims axes;
  for (int64_t i = x.dim() - count; i < x.dim(); ++i) axes.push_back(i);
  return axes;
}

// normalized_shape names the last dims of x and the shape of the parameters.
void check_normalized(const Tensor& x, const Dims& shape, const Tensor& weight, const Tensor& bias,
                      const char* op, const SourceLoc& loc) {
  Node* n = floating(x, op, loc);
  int k = shape.size();
  bool ok = k > 0 && k <= n->rank();
  for (int i = 0; ok && i < k; ++i) ok = shape[i] == n->shape[n->rank() - k + i];
  if (!ok)
    fail(ErrorKind::Shape, op,
         "normalized_shape " + to_string(shape) + " is not the end of " + describe(x), loc,
         n->rank() ? "to normalise over the last dim, use {" + std::to_string(n->shape.back()) + "}"
                   : "");
  for (const Tensor* p : {&weight, &bias})
    if (p->defined() && !(p->shape() == shape))
      fail(ErrorKind::Shape, op,
           std::string(p == &weight ? "the weight" : "the bias") + " must be " + to_string(shape) +
               ", not " + describe(*p),
           loc);
}

}  // namespace

Tensor layer_norm(const Tensor& x, const Dims& normalized_shape, const Tensor& weight,
                  const Tensor& bias, double eps, SourceLoc where) {
  SourceLoc loc = user_loc(where);
  LocScope scope(loc);
  check_normalized(x, normalized_shape, weight, bias, "layer_norm", loc);
  return composite(
      "layer_norm", {normalized_shape.size(), eps, weight.defined(), bias.defined()},
      {x, weight, bias}, x.shape(), raised(x.dtype()),
      [](const CompositeArgs& a) {
        const DType w = compute_type(a[0].dtype());
        const Axes axes = last_axes(a[0], a.i(0));
        Tensor f = a[0].to(w);
        Tensor centred = f - f.mean(axes, true);
        Tensor y = centred * rsqrt((centred * centred).mean(axes, true) + a.f(1));
        if (a.flag(2)) y = y * a[1].to(w);
        if (a.flag(3)) y = y + a.in.back().to(w);
        return y.to(a.result);
      },
      loc);
}

Tensor rms_norm(const Tensor& x, const Dims& normalized_shape, const Tensor& weight,
                std::optional<double> eps, SourceLoc where) {
  SourceLoc loc = user_loc(where);
  LocScope scope(loc);
  check_normalized(x, normalized_shape, weight, {}, "rms_norm", loc);
  DType t = x.dtype(), w = compute_type(t);
  double e = eps                   ? *eps
             : w == DType::Float64 ? std::numeric_limits<double>::epsilon()
                                   : static_cast<double>(std::numeric_limits<float>::epsilon());
  return composite(
      "rms_norm", {normalized_shape.size(), e, weight.defined()}, {x, weight}, x.shape(), raised(t),
      [](const CompositeArgs& a) {
        const DType wide = compute_type(a[0].dtype());
        Tensor f = a[0].to(wide);
        Tensor y = f * rsqrt((f * f).mean(last_axes(a[0], a.i(0)), true) + a.f(1));
        if (a.flag(2)) y = y * a[1].to(wide);
        return y.to(a.result);
      },
      loc);
}

// ---- Dropout

Tensor dropout(const Tensor& x, double p, bool training, const Generator& generator,
               SourceLoc place) {
  SourceLoc loc = user_loc(place);
  LocScope scope(loc);
  Node* n = floating(x, "dropout", loc);
  if (!(p >= 0 && p <= 1))
    fail(ErrorKind::Value, "dropout", "p is a probability, between 0 and 1, not " + text_of(p),
         loc);
  if (!training || p == 0) return x;
  if (p == 1) return x * 0.0;
  Tensor u = rand(n->shape, {DType::Float32, n->device}, generator, loc);
  return where(u >= p, x * (1.0 / (1.0 - p)), 0.0);
}

// ---- Attention

// A mask as numbers that are added to the scores, of rank 4; undefined when it is none or wants a
// gradient.
static Tensor added_scores(const Tensor& mask, DType type) {
  if (!mask.defined() || mask.dim() > 4 || mask.requires_grad()) return {};
  Tensor bias = mask.dtype() == DType::Bool
                    ? where(mask, 0.0, -std::numeric_limits<double>::infinity())
                    : mask;
  while (bias.dim() < 4) bias = bias.unsqueeze(0);
  return bias.to(type);
}

// Is it attention over [B, H, T, D] as Op::Attention has it?
static bool is_attention_call(const Node& q, const Node& k, const Node& v, const Tensor& bias) {
  if (is_eager())
    return false;  // op by op, a call would run before its other results are asked for
  for (int d : {0, 1})
    if (q.shape[d] != k.shape[d] || q.shape[d] != v.shape[d]) return false;
  if (q.dtype != k.dtype || q.dtype != v.dtype || q.device != k.device || q.device != v.device)
    return false;
  if (bias.defined()) {
    const Dims b = bias.shape(), all{q.shape[0], q.shape[1], q.shape[2], k.shape[2]};
    for (int d = 0; d < 4; ++d)
      if (b[d] != all[d] && b[d] != 1) return false;
  }
  return q.numel() > 0 && k.numel() > 0 && v.numel() > 0;
}

std::vector<Tensor> decompose_attention(Op, const OpSpec& call, const std::vector<Tensor>& in) {
  const AttentionAttrs& a = call.attrs.as<AttentionAttrs>();
  const SourceLoc loc = user_loc(SourceLoc::current());
  if (a.newest()) return {decompose_newest(a.scale, in)};
  const Tensor scores =
      attention_scores(in[0], in[1], in.size() > 3 ? in[3] : Tensor(), a.causal(), a.scale, loc);
  return {matmul(softmax(scores, -1, loc), in[2], loc), logsumexp(scores.to(float32), {-1})};
}

Tensor attention_scores(const Tensor& query, const Tensor& key, const Tensor& mask, bool causal,
                        double scale, const SourceLoc& loc) {
  const double never = -std::numeric_limits<double>::infinity();
  Tensor scores = matmul(query, key.transpose(-1, -2), loc) * scale;
  if (causal) {
    Tensor row = arange(query.size(-2), query.device()).unsqueeze(1),
           col = arange(key.size(-2), query.device());
    return where(col <= row, scores, never);
  }
  if (!mask.defined()) return scores;
  return mask.dtype() == DType::Bool ? where(mask, scores, never) : scores + mask;
}

// Rows of a mask that hide every key, with a last dim of 1. Their result is 0, as in PyTorch.
static Tensor blind_rows(const Tensor& mask) {
  if (mask.dtype() == DType::Bool) return logical_not(any(mask, -1, true));
  return all(mask.detach() == -std::numeric_limits<double>::infinity(), -1, true);
}

Tensor scaled_dot_product_attention(const Tensor& query, const Tensor& key, const Tensor& value,
                                    const AttentionOptions& options, SourceLoc place) {
  const Tensor& mask = options.mask;
  if (!mask.defined() || mask.dim() == 0 || mask.numel() == 0)
    return seeing_attention(query, key, value, options, place);
  // Such rows look at every key, so that nothing is divided by 0, and what they see is dropped.
  SourceLoc loc = user_loc(place);
  LocScope scope(loc);
  Tensor blind = blind_rows(mask);
  AttentionOptions open = options;
  open.mask = mask.dtype() == DType::Bool ? logical_or(mask, blind) : where(blind, 0.0, mask);
  return where(blind, 0.0, seeing_attention(query, key, value, open, loc));
}

Tensor seeing_attention(const Tensor& query, const Tensor& key, const Tensor& value,
                        const AttentionOptions& options, SourceLoc place) {
  const char* op = "scaled_dot_product_attention";
  SourceLoc loc = user_loc(place);
  LocScope scope(loc);
  Node *q = floating(query, op, loc), *k = floating(key, op, loc), *v = floating(value, op, loc);
  bool ok = q->rank() >= 2 && k->rank() >= 2 && v->rank() >= 2 &&
            q->shape.back() == k->shape.back() &&
            k->shape[k->rank() - 2] == v->shape[v->rank() - 2];
  if (!ok)
    fail(ErrorKind::Shape, op,
         "expects query [..., T, d], key [..., S, d] and value [..., S, e], not " +
             describe(query) + ", " + describe(key) + " and " + describe(value),
         loc);
  if (options.is_causal && options.mask.defined())
    fail(ErrorKind::Value, op, "takes a mask or is_causal, not both", loc,
         "put the causal part into the mask");
  double scale =
      options.scale ? *options.scale : 1.0 / std::sqrt(static_cast<double>(q->shape.back()));
  if (autocasting()) {
    const Tensor lower[3] = {lowered(query), lowered(key), lowered(value)};
    amp::Autocast off(bfloat16, false);
    return seeing_attention(lower[0], lower[1], lower[2], options, loc);
  }
  if (options.enable_gqa && q->rank() >= 3 && k->rank() == q->rank() && v->rank() == q->rank()) {
    int64_t heads = q->shape[q->rank() - 3], groups = k->shape[q->rank() - 3];
    if (groups == 0 || heads % groups != 0 || v->shape[q->rank() - 3] != groups)
      fail(ErrorKind::Shape, op,
           "the query's heads must be a multiple of the key's and value's: " + describe(query) +
               ", " + describe(key) + " and " + describe(value),
           loc);
    if (groups != heads) {
      auto repeated = [&](const Tensor& t) {
        std::vector<int64_t> wide = t.shape().vec();
        std::vector<int64_t> shape = wide;
        wide.insert(wide.end() - 2, heads / groups);
        shape[shape.size() - 3] = heads;
        return t.unsqueeze(-3).expand(wide).reshape(shape);
      };
      AttentionOptions equal = options;
      equal.enable_gqa = false;
      return seeing_attention(query, repeated(key), repeated(value), equal, loc);
    }
  }
  const bool fusible = is_half(q->dtype) || q->dtype == DType::Float32;
  if (options.dropout_p == 0 && fusible && q->rank() == 4 && k->rank() == 4 && v->rank() == 4) {
    Tensor bias = added_scores(options.mask, q->dtype);
    if ((!options.mask.defined() || bias.defined()) && is_attention_call(*q, *k, *v, bias))
      return fused_attention(query, key, value, bias, options.is_causal, scale, loc);
  }
  Tensor scores = attention_scores(query, key, options.mask, options.is_causal, scale, loc);
  Tensor p = dropout(softmax(scores, -1, loc), options.dropout_p, options.dropout_p > 0,
                     default_generator(), loc);
  return matmul(p, value, loc);
}

}  // namespace ingot
