// Attention with several heads, and the Transformer's layers, with PyTorch's names, layouts, masks
// and initial values. As in PyTorch, sequences come as [time, batch, width] unless batch_first; a
// bool mask is true for hidden positions, a floating one is added to the scores.
#pragma once
#include "ingot/nn/containers.h"
#include "ingot/nn/layers.h"

namespace ingot::nn {

struct MultiheadAttentionOptions {
  double dropout = 0;  ///< of the attention weights, while training
  bool bias = true;
  bool add_bias_kv = false;       ///< one more trained key and value
  bool add_zero_attn = false;     ///< one more key and value of zeros
  std::optional<int64_t> kdim{};  ///< width of keys; embed_dim when not given
  std::optional<int64_t> vdim{};  ///< width of values
  bool batch_first = false;
  std::optional<Device> device{};
  std::optional<DType> dtype{};
};
struct AttentionMasks {
  Tensor key_padding_mask{};  ///< [batch, keys]
  bool need_weights = true;
  Tensor attn_mask{};  ///< [time, keys] or [batch * heads, time, keys]
  bool average_attn_weights = true;
  bool is_causal = false;  ///< position i sees 0..i; no attn_mask is needed then
};
struct AttentionResult {
  Tensor output;
  Tensor weights;  ///< [batch, time, keys], or with the heads as dim 1; computed only if the
                   ///< program keeps it
};
/// Attention of queries to keys and values: [time, batch, width] each, or [time, width]. Throws
/// Error(Value) unless embed_dim is a multiple of num_heads, Error(Shape) for operands and masks
/// that do not fit.
class MultiheadAttention : public Module {
 public:
  MultiheadAttention(int64_t embed_dim, int64_t num_heads,
                     const MultiheadAttentionOptions& options = {},
                     SourceLoc loc = SourceLoc::current());
  AttentionResult operator()(Tensor query, Tensor key, Tensor value,
                             const AttentionMasks& masks = {},
                             SourceLoc loc = SourceLoc::current());
  Tensor forward(Tensor x) override;  ///< self-attention's output
  std::string description() const override;

 private:
  Tensor projected(const Tensor& x, int which) const;
  AttentionResult attend(Tensor query, Tensor key, Tensor value, const AttentionMasks& masks);
  Tensor merged_mask(const AttentionMasks& masks, const Tensor& query, int64_t batch, int64_t time,
                     int64_t keys) const;
  int64_t width_, heads_;
  MultiheadAttentionOptions o_;
  bool same_width_;
  Linear out_proj_;
};

struct TransformerLayerOptions {
  int64_t dim_feedforward = 2048;
  double dropout = 0.1;
  std::string activation = "relu";  ///< or "gelu"; Error(Value) for another word
  double layer_norm_eps = 1e-5;
  bool batch_first = false;
  bool norm_first = false;  ///< norms before attention and feed-forward, not after the sums
  bool bias = true;
  std::optional<Device> device{};
  std::optional<DType> dtype{};
};
struct EncoderMasks {
  Tensor mask{};  ///< src_mask
  Tensor src_key_padding_mask{};
  bool is_causal = false;
};
struct DecoderMasks {
  Tensor tgt_mask{};
  Tensor memory_mask{};
  Tensor tgt_key_padding_mask{};
  Tensor memory_key_padding_mask{};
  bool tgt_is_causal = false;
  bool memory_is_causal = false;
};

class TransformerEncoderLayer : public Module {
 public:
  TransformerEncoderLayer(int64_t d_model, int64_t nhead,
                          const TransformerLayerOptions& options = {},
                          SourceLoc loc = SourceLoc::current());
  Tensor operator()(Tensor src, const EncoderMasks& masks = {},
                    SourceLoc loc = SourceLoc::current());
  Tensor forward(Tensor src) override { return run(std::move(src), {}); }
  int64_t width() const { return width_; }

 private:
  Tensor run(Tensor x, const EncoderMasks& masks);
  Tensor attention(const Tensor& x, const EncoderMasks& masks);
  Tensor feed_forward(const Tensor& x);
  int64_t width_;
  bool norm_first_;
  std::string activation_;
  MultiheadAttention self_attn_;
  Linear linear1_;
  Dropout dropout_;
  Linear linear2_;
  LayerNorm norm1_, norm2_;
  Dropout dropout1_, dropout2_;
};

class TransformerDecoderLayer : public Module {
 public:
  TransformerDecoderLayer(int64_t d_model, int64_t nhead,
                          const TransformerLayerOptions& options = {},
                          SourceLoc loc = SourceLoc::current());
  Tensor operator()(Tensor tgt, Tensor memory, const DecoderMasks& masks = {},
                    SourceLoc loc = SourceLoc::current());
  int64_t width() const { return width_; }

 private:
  Tensor run(Tensor x, const Tensor& memory, const DecoderMasks& masks);
  int64_t width_;
  bool norm_first_;
  std::string activation_;
  MultiheadAttention self_attn_, multihead_attn_;
  Linear linear1_;
  Dropout dropout_;
  Linear linear2_;
  LayerNorm norm1_, norm2_, norm3_;
  Dropout dropout1_, dropout2_, dropout3_;
};

/// num_layers copies of a layer, which start from its values, as in PyTorch; then a norm, if one is
/// given.
class TransformerEncoder : public Module {
 public:
  TransformerEncoder(const TransformerEncoderLayer& encoder_layer, int64_t num_layers,
                     std::optional<LayerNorm> norm = {}, SourceLoc loc = SourceLoc::current());
  Tensor operator()(Tensor src, const EncoderMasks& masks = {},
                    SourceLoc loc = SourceLoc::current());
  Tensor forward(Tensor src) override { return run(std::move(src), {}); }

 private:
  Tensor run(Tensor x, const EncoderMasks& masks);
  ModuleList<TransformerEncoderLayer> layers_;
  std::optional<LayerNorm> norm_;
};

class TransformerDecoder : public Module {
 public:
  TransformerDecoder(const TransformerDecoderLayer& decoder_layer, int64_t num_layers,
                     std::optional<LayerNorm> norm = {}, SourceLoc loc = SourceLoc::current());
  Tensor operator()(Tensor tgt, Tensor memory, const DecoderMasks& masks = {},
                    SourceLoc loc = SourceLoc::current());

 private:
  ModuleList<TransformerDecoderLayer> layers_;
  std::optional<LayerNorm> norm_;
};

struct TransformerOptions {
  int64_t d_model = 512;
  int64_t nhead = 8;
  int64_t num_encoder_layers = 6;
  int64_t num_decoder_layers = 6;
  int64_t dim_feedforward = 2048;
  double dropout = 0.1;
  std::string activation = "relu";
  double layer_norm_eps = 1e-5;
  bool batch_first = false;
  bool norm_first = false;
  bool bias = true;
  std::optional<Device> device{};
  std::optional<DType> dtype{};
};
struct TransformerMasks {
  Tensor src_mask{};
  Tensor tgt_mask{};
  Tensor memory_mask{};
  Tensor src_key_padding_mask{};
  Tensor tgt_key_padding_mask{};
  Tensor memory_key_padding_mask{};
  bool src_is_causal = false;
  bool tgt_is_causal = false;
  bool memory_is_causal = false;
};
/// Encoder and decoder: transformer(src, tgt).
class Transformer : public Module {
 public:
  explicit Transformer(const TransformerOptions& options = {},
                       SourceLoc loc = SourceLoc::current());
  Tensor operator()(Tensor src, Tensor tgt, const TransformerMasks& masks = {},
                    SourceLoc loc = SourceLoc::current());
  /// [size, size] with 0 where position i sees j and -infinity elsewhere.
  static Tensor generate_square_subsequent_mask(int64_t size, const Options& options = {},
                                                SourceLoc loc = SourceLoc::current());

 private:
  TransformerEncoder encoder_;
  TransformerDecoder decoder_;
};

struct RotaryOptions {
  double base = 10000;
  bool interleaved = false;  ///< pairs are neighbours; otherwise element i and i + dim / 2
};
/// Rotary positions: rotates each pair of elements of the last dim (of size `dim`) by position /
/// base^(2 i / dim). x [..., time, dim]; positions [time], int64 or floating (0, 1, ... when not
/// given). Throws Error(Value) unless dim is even, Error(Shape) for another last dim.
class RotaryEmbedding : public Module {
 public:
  explicit RotaryEmbedding(int64_t dim, const RotaryOptions& options = {},
                           SourceLoc loc = SourceLoc::current());
  Tensor operator()(Tensor x, Tensor positions = {}, SourceLoc loc = SourceLoc::current());
  Tensor forward(Tensor x) override { return rotated(x, {}); }

 private:
  Tensor rotated(const Tensor& x, Tensor positions) const;
  int64_t dim_;
  RotaryOptions o_;
};

}  // namespace ingot::nn
