// Attention uses scaled_dot_product_attention, which a backend may have as one kernel;
// masks are only built where they are given. The weights are recorded separately and cost
// nothing unless they are kept.
#include "ingot/nn/transformer.h"

#include <cmath>
#include <limits>

#include "ingot/nn/init.h"
#include "nn/layer_common.h"

namespace ingot::nn {
namespace {

int64_t checked_heads(int64_t width, int64_t heads, const SourceLoc& where) {
  SourceLoc loc = user_loc(where);
  check_size(width, "embed_dim", "MultiheadAttention", loc);
  check_size(heads, "num_heads", "MultiheadAttention", loc);
  if (width % heads != 0)
    fail(ErrorKind::Value, "MultiheadAttention",
         "the width " + std::to_string(width) + " is not a multiple of the " +
             std::to_string(heads) + " heads",
         loc);
  return heads;
}

// A mask (true or -infinity: hidden) as values to add to the scores.
Tensor added(const Tensor& mask, DType dtype) {
  if (mask.dtype() != DType::Bool) return mask.to(dtype);
  const double low = -std::numeric_limits<double>::infinity();
  return where(mask, full({}, low, {dtype, mask.device()}), full({}, 0.0, {dtype, mask.device()}));
}

Tensor activate(const Tensor& x, const std::string& word) {
  return word == "relu" ? relu(x) : gelu(x);
}

const TransformerLayerOptions& checked(const TransformerLayerOptions& o, const SourceLoc& loc) {
  if (o.activation != "relu" && o.activation != "gelu")
    fail(ErrorKind::Value, "Transformer", "activation is \"" + o.activation + "\"", user_loc(loc),
         "use \"relu\" or \"gelu\"");
  return o;
}

MultiheadAttention attention_of(int64_t d_model, int64_t nhead, const TransformerLayerOptions& o,
                                const SourceLoc& loc) {
  return MultiheadAttention(d_model, nhead,
                            {.dropout = o.dropout,
                             .bias = o.bias,
                             .batch_first = o.batch_first,
                             .device = o.device,
                             .dtype = o.dtype},
                            loc);
}
Linear linear_of(int64_t in, int64_t out, const TransformerLayerOptions& o, const SourceLoc& loc) {
  return Linear(in, out, {.bias = o.bias, .device = o.device, .dtype = o.dtype}, loc);
}
LayerNorm norm_of(int64_t d_model, const TransformerLayerOptions& o, const SourceLoc& loc) {
  return LayerNorm(Dims{d_model},
                   {.eps = o.layer_norm_eps, .bias = o.bias, .device = o.device, .dtype = o.dtype},
                   loc);
}

}  // namespace

// ---- Attention

MultiheadAttention::MultiheadAttention(int64_t embed_dim, int64_t num_heads,
                                       const MultiheadAttentionOptions& options, SourceLoc where)
    : width_(embed_dim),
      heads_(checked_heads(embed_dim, num_heads, where)),
      o_(options),
      same_width_(options.kdim.value_or(embed_dim) == embed_dim &&
                  options.vdim.value_or(embed_dim) == embed_dim),
      out_proj_(embed_dim, embed_dim,
                {.bias = options.bias, .device = options.device, .dtype = options.dtype}, where) {
  SourceLoc loc = user_loc(where);
  LocScope scope(loc);
  const Options made = where_of(options);
  const auto matrix = [&](const char* name, int64_t in) {
    register_parameter(
        name, init::xavier_uniform_(empty({same_width_ ? 3 * width_ : width_, in}, made).eval_()),
        loc);
  };
  if (same_width_) {
    matrix("in_proj_weight", width_);
  } else {
    matrix("q_proj_weight", width_);
    matrix("k_proj_weight", o_.kdim.value_or(width_));
    matrix("v_proj_weight", o_.vdim.value_or(width_));
  }
  if (o_.bias) {
    register_parameter("in_proj_bias", zeros({3 * width_}, made), loc);
    init::zeros_(out_proj_.bias());
  }
  if (o_.add_bias_kv)
    for (const char* name : {"bias_k", "bias_v"})
      register_parameter(name, init::xavier_normal_(empty({1, 1, width_}, made).eval_()), loc);
  register_module("out_proj", out_proj_, loc);
}

std::string MultiheadAttention::description() const {
  return "MultiheadAttention(embed_dim=" + std::to_string(width_) +
         ", num_heads=" + std::to_string(heads_) + ", dropout=" + text_of(o_.dropout) +
         ", batch_first=" + yes_no(o_.batch_first) + ")";
}

Tensor MultiheadAttention::projected(const Tensor& x, int which) const {
  const Tensor bias =
      o_.bias ? own(same_width_ ? 1 : 3).narrow(0, which * width_, width_) : Tensor();
  return linear(
      x, same_width_ ? own(0).narrow(0, which * width_, width_) : own(static_cast<size_t>(which)),
      bias);
}

// Everything that hides keys, to be added to the scores: [batch or 1, heads or 1, time or 1, keys];
// undefined when nothing does.
Tensor MultiheadAttention::merged_mask(const AttentionMasks& m, const Tensor& query, int64_t batch,
                                       int64_t time, int64_t keys) const {
  SourceLoc loc = user_loc(SourceLoc::current());
  Tensor mask;
  if (m.attn_mask.defined()) {
    const Dims& s = m.attn_mask.shape();
    const bool one = s == Dims{time, keys}, each = s == Dims{batch * heads_, time, keys};
    if (!one && !each)
      fail(ErrorKind::Shape, "MultiheadAttention",
           "attn_mask must be [" + std::to_string(time) + ", " + std::to_string(keys) + "] or [" +
               std::to_string(batch * heads_) + ", " + std::to_string(time) + ", " +
               std::to_string(keys) + "], not " + describe(m.attn_mask),
           loc);
    mask = added(m.attn_mask, query.dtype())
               .reshape(one ? Dims{1, 1, time, keys} : Dims{batch, heads_, time, keys});
  }
  if (m.key_padding_mask.defined()) {
    if (m.key_padding_mask.numel() != batch * keys)
      fail(ErrorKind::Shape, "MultiheadAttention",
           "key_padding_mask must be [" + std::to_string(batch) + ", " + std::to_string(keys) +
               "], not " + describe(m.key_padding_mask),
           loc);
    Tensor hidden = added(m.key_padding_mask, query.dtype()).reshape({batch, 1, 1, keys});
    mask = mask.defined() ? mask + hidden : hidden;
  }
  const int64_t extra = (o_.add_bias_kv ? 1 : 0) + (o_.add_zero_attn ? 1 : 0);
  if (m.is_causal && !m.attn_mask.defined() && (mask.defined() || extra > 0)) {
    Tensor causal = added(ones({time, keys}, {DType::Bool, query.device()}).triu(1), query.dtype())
                        .reshape({1, 1, time, keys});
    mask = mask.defined() ? mask + causal : causal;
  }
  return mask.defined() && extra > 0 ? pad(mask, {0, extra})
                                     : mask;  // the added keys are visible to all
}

AttentionResult MultiheadAttention::attend(Tensor query, Tensor key, Tensor value,
                                           const AttentionMasks& m) {
  SourceLoc loc = user_loc(SourceLoc::current());
  const bool batched = query.dim() == 3;
  for (const Tensor* t : {&query, &key, &value})
    if (t->dim() != query.dim() || (t->dim() != 2 && t->dim() != 3))
      fail(ErrorKind::Shape, "MultiheadAttention",
           "query, key and value must all have 3 dims, or 2 without a batch, not " + describe(*t),
           loc);
  const auto lead_with_batch = [&](const Tensor& t) {
    return !batched ? t.unsqueeze(0) : o_.batch_first ? t : t.transpose(0, 1);
  };
  Tensor q = projected(lead_with_batch(query), 0), k = projected(lead_with_batch(key), 1),
         v = projected(lead_with_batch(value), 2);
  const int64_t batch = q.size(0), time = q.size(1), keys = k.size(1), head = width_ / heads_;
  if (k.size(0) != batch || v.size(0) != batch || v.size(1) != keys)
    fail(ErrorKind::Shape, "MultiheadAttention",
         describe(query) + ", " + describe(key) + " and " + describe(value) +
             " do not have the same batch size, or keys and values not the same length",
         loc);
  if (o_.add_bias_kv) {
    const size_t first = (same_width_ ? 1 : 3) + (o_.bias ? 1 : 0);
    k = cat({k, own(first).to(k.dtype()).expand({batch, 1, width_})}, 1);
    v = cat({v, own(first + 1).to(v.dtype()).expand({batch, 1, width_})}, 1);
  }
  if (o_.add_zero_attn) {
    k = pad(k, {0, 0, 0, 1});
    v = pad(v, {0, 0, 0, 1});
  }
  const auto split = [&](const Tensor& t) {
    return t.view({batch, t.size(1), heads_, head}).transpose(1, 2);
  };
  q = split(q), k = split(k), v = split(v);
  const Tensor mask = merged_mask(m, q, batch, time, keys);
  const bool causal = m.is_causal && !mask.defined();
  Tensor y = scaled_dot_product_attention(
      q, k, v, {.mask = mask, .dropout_p = is_training() ? o_.dropout : 0, .is_causal = causal});
  y = out_proj_(y.transpose(1, 2).reshape({batch, time, width_}));
  AttentionResult result{!batched ? y.squeeze(0) : o_.batch_first ? y : y.transpose(0, 1), {}};
  if (m.need_weights) {
    Tensor scores = matmul(q, k.transpose(-2, -1)) * (1 / std::sqrt(static_cast<double>(head)));
    if (mask.defined()) scores = scores + mask;
    if (causal)
      scores = scores + added(ones({time, keys}, {DType::Bool, q.device()}).triu(1), q.dtype());
    Tensor w = softmax(scores, -1);
    if (m.average_attn_weights) w = w.mean(1);
    result.weights = batched ? w : w.squeeze(0);
  }
  return result;
}

AttentionResult MultiheadAttention::operator()(Tensor query, Tensor key, Tensor value,
                                               const AttentionMasks& masks, SourceLoc loc) {
  detail::Call call(*this, loc);
  AttentionResult r = attend(call.enter(std::move(query)), call.enter(std::move(key)),
                             call.enter(std::move(value)), masks);
  return {call.leave(r.output), r.weights.defined() ? call.leave(r.weights) : Tensor()};
}

Tensor MultiheadAttention::forward(Tensor x) {
  return attend(x, x, x, {.need_weights = false}).output;
}

// ---- Encoder and decoder layers

TransformerEncoderLayer::TransformerEncoderLayer(int64_t d, int64_t nhead,
                                                 const TransformerLayerOptions& o, SourceLoc loc)
    : width_(d),
      norm_first_(o.norm_first),
      activation_(checked(o, loc).activation),
      self_attn_(add("self_attn", attention_of(d, nhead, o, loc))),
      linear1_(add("linear1", linear_of(d, o.dim_feedforward, o, loc))),
      dropout_(add("dropout", Dropout(o.dropout, loc))),
      linear2_(add("linear2", linear_of(o.dim_feedforward, d, o, loc))),
      norm1_(add("norm1", norm_of(d, o, loc))),
      norm2_(add("norm2", norm_of(d, o, loc))),
      dropout1_(add("dropout1", Dropout(o.dropout, loc))),
      dropout2_(add("dropout2", Dropout(o.dropout, loc))) {}

Tensor TransformerEncoderLayer::attention(const Tensor& x, const EncoderMasks& m) {
  return dropout1_(self_attn_(x, x, x,
                              {.key_padding_mask = m.src_key_padding_mask,
                               .need_weights = false,
                               .attn_mask = m.mask,
                               .is_causal = m.is_causal})
                       .output);
}
Tensor TransformerEncoderLayer::feed_forward(const Tensor& x) {
  return dropout2_(linear2_(dropout_(activate(linear1_(x), activation_))));
}

Tensor TransformerEncoderLayer::run(Tensor x, const EncoderMasks& m) {
  if (norm_first_) {
    x = x + attention(norm1_(x), m);
    return x + feed_forward(norm2_(x));
  }
  x = norm1_(x + attention(x, m));
  return norm2_(x + feed_forward(x));
}

Tensor TransformerEncoderLayer::operator()(Tensor src, const EncoderMasks& masks, SourceLoc loc) {
  detail::Call call(*this, loc);
  return call.leave(run(call.enter(std::move(src)), masks));
}

TransformerDecoderLayer::TransformerDecoderLayer(int64_t d, int64_t nhead,
                                                 const TransformerLayerOptions& o, SourceLoc loc)
    : width_(d),
      norm_first_(o.norm_first),
      activation_(checked(o, loc).activation),
      self_attn_(add("self_attn", attention_of(d, nhead, o, loc))),
      multihead_attn_(add("multihead_attn", attention_of(d, nhead, o, loc))),
      linear1_(add("linear1", linear_of(d, o.dim_feedforward, o, loc))),
      dropout_(add("dropout", Dropout(o.dropout, loc))),
      linear2_(add("linear2", linear_of(o.dim_feedforward, d, o, loc))),
      norm1_(add("norm1", norm_of(d, o, loc))),
      norm2_(add("norm2", norm_of(d, o, loc))),
      norm3_(add("norm3", norm_of(d, o, loc))),
      dropout1_(add("dropout1", Dropout(o.dropout, loc))),
      dropout2_(add("dropout2", Dropout(o.dropout, loc))),
      dropout3_(add("dropout3", Dropout(o.dropout, loc))) {}

Tensor TransformerDecoderLayer::run(Tensor x, const Tensor& memory, const DecoderMasks& m) {
  const auto own_part = [&](const Tensor& t) {
    return dropout1_(self_attn_(t, t, t,
                                {.key_padding_mask = m.tgt_key_padding_mask,
                                 .need_weights = false,
                                 .attn_mask = m.tgt_mask,
                                 .is_causal = m.tgt_is_causal})
                         .output);
  };
  const auto memory_part = [&](const Tensor& t) {
    return dropout2_(multihead_attn_(t, memory, memory,
                                     {.key_padding_mask = m.memory_key_padding_mask,
                                      .need_weights = false,
                                      .attn_mask = m.memory_mask,
                                      .is_causal = m.memory_is_causal})
                         .output);
  };
  const auto feed_forward = [&](const Tensor& t) {
    return dropout3_(linear2_(dropout_(activate(linear1_(t), activation_))));
  };
  if (norm_first_) {
    x = x + own_part(norm1_(x));
    x = x + memory_part(norm2_(x));
    return x + feed_forward(norm3_(x));
  }
  x = norm1_(x + own_part(x));
  x = norm2_(x + memory_part(x));
  return norm3_(x + feed_forward(x));
}

Tensor TransformerDecoderLayer::operator()(Tensor tgt, Tensor memory, const DecoderMasks& masks,
                                           SourceLoc loc) {
  detail::Call call(*this, loc);
  return call.leave(run(call.enter(std::move(tgt)), call.enter(std::move(memory)), masks));
}

// ---- Stacks

template <class L>
static ModuleList<L> copies_of(const L& layer, int64_t count, const SourceLoc& where) {
  SourceLoc loc = user_loc(where);
  check_size(count, "num_layers", "Transformer", loc);
  ModuleList<L> list;
  for (int64_t i = 0; i < count; ++i) list.push_back(nn::clone(layer, loc), loc);
  return list;
}

TransformerEncoder::TransformerEncoder(const TransformerEncoderLayer& layer, int64_t num_layers,
                                       std::optional<LayerNorm> norm, SourceLoc loc)
    : layers_(add("layers", copies_of(layer, num_layers, loc))), norm_(std::move(norm)) {
  if (norm_) register_module("norm", *norm_);
}

Tensor TransformerEncoder::run(Tensor x, const EncoderMasks& masks) {
  for (TransformerEncoderLayer& layer : layers_) x = layer(x, masks);
  return norm_ ? (*norm_)(x) : x;
}

Tensor TransformerEncoder::operator()(Tensor src, const EncoderMasks& masks, SourceLoc loc) {
  detail::Call call(*this, loc);
  return call.leave(run(call.enter(std::move(src)), masks));
}

TransformerDecoder::TransformerDecoder(const TransformerDecoderLayer& layer, int64_t num_layers,
                                       std::optional<LayerNorm> norm, SourceLoc loc)
    : layers_(add("layers", copies_of(layer, num_layers, loc))), norm_(std::move(norm)) {
  if (norm_) register_module("norm", *norm_);
}

Tensor TransformerDecoder::operator()(Tensor x, Tensor memory, const DecoderMasks& masks,
                                      SourceLoc loc) {
  detail::Call call(*this, loc);
  x = call.enter(std::move(x));
  for (TransformerDecoderLayer& layer : layers_) x = layer(x, memory, masks);
  return call.leave(norm_ ? (*norm_)(x) : x);
}

static TransformerLayerOptions layer_options(const TransformerOptions& o) {
  return {o.dim_feedforward, o.dropout, o.activation, o.layer_norm_eps, o.batch_first,
          o.norm_first,      o.bias,    o.device,     o.dtype};
}

Transformer::Transformer(const TransformerOptions& o, SourceLoc loc)
    : encoder_(add("encoder",
                   TransformerEncoder(
                       TransformerEncoderLayer(o.d_model, o.nhead, layer_options(o), loc),
                       o.num_encoder_layers, norm_of(o.d_model, layer_options(o), loc), loc))),
      decoder_(add("decoder",
                   TransformerDecoder(
                       TransformerDecoderLayer(o.d_model, o.nhead, layer_options(o), loc),
                       o.num_decoder_layers, norm_of(o.d_model, layer_options(o), loc), loc))) {
  for (const Tensor& p : parameters())
    if (p.dim() > 1) init::xavier_uniform_(p);
}

Tensor Transformer::operator()(Tensor src, Tensor tgt, const TransformerMasks& m, SourceLoc loc) {
  detail::Call call(*this, loc);
  Tensor memory =
      encoder_(call.enter(std::move(src)), {m.src_mask, m.src_key_padding_mask, m.src_is_causal});
  return call.leave(decoder_(call.enter(std::move(tgt)), memory,
                             {m.tgt_mask, m.memory_mask, m.tgt_key_padding_mask,
                              m.memory_key_padding_mask, m.tgt_is_causal, m.memory_is_causal}));
}

Tensor Transformer::generate_square_subsequent_mask(int64_t size, const Options& options,
                                                    SourceLoc where) {
  SourceLoc loc = user_loc(where);
  LocScope scope(loc);
  return added(ones({size, size}, {DType::Bool, device_or_default(options)}).triu(1),
               dtype_or(options, float32));
}

// ---- Rotary positions

RotaryEmbedding::RotaryEmbedding(int64_t dim, const RotaryOptions& options, SourceLoc loc)
    : dim_(dim), o_(options) {
  if (dim < 2 || dim % 2 != 0)
    fail(ErrorKind::Value, "RotaryEmbedding",
         "dim must be even and positive, not " + std::to_string(dim), user_loc(loc));
}

Tensor RotaryEmbedding::rotated(const Tensor& x, Tensor positions) const {
  SourceLoc loc = user_loc(SourceLoc::current());
  if (x.dim() < 2 || x.size(-1) != dim_)
    fail(ErrorKind::Shape, "RotaryEmbedding",
         "expects [..., time, " + std::to_string(dim_) + "], not " + describe(x), loc);
  if (!positions.defined()) positions = arange(x.size(-2), x.device());
  if (positions.dim() != 1 || positions.size(0) != x.size(-2))
    fail(ErrorKind::Shape, "RotaryEmbedding",
         "positions must be [" + std::to_string(x.size(-2)) + "], not " + describe(positions), loc);
  const DType type = x.dtype() == float64 ? float64 : float32;
  Tensor pair = arange(dim_ / 2, x.device()).to(type);
  Tensor angle = positions.to(type).unsqueeze(1) *
                 exp(pair * (-2 * std::log(o_.base) / static_cast<double>(dim_)));
  Tensor c = cos(angle), s = sin(angle), wide = x.to(type);
  if (!o_.interleaved) {
    Tensor a = wide.narrow(-1, 0, dim_ / 2), b = wide.narrow(-1, dim_ / 2, dim_ / 2);
    return cat({a * c - b * s, b * c + a * s}, -1).to(x.dtype());
  }
  Dims pairs = x.shape();
  pairs[pairs.size() - 1] = dim_ / 2;
  pairs.push_back(2);
  Tensor p = wide.reshape(pairs), a = p.select(-1, 0), b = p.select(-1, 1);
  return stack({a * c - b * s, b * c + a * s}, -1).reshape(x.shape()).to(x.dtype());
}

Tensor RotaryEmbedding::operator()(Tensor x, Tensor positions, SourceLoc loc) {
  detail::Call call(*this, loc);
  return rotated(x, std::move(positions));
}

}  // namespace ingot::nn
