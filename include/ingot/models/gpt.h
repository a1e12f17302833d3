// GPT is GPT-2's architecture: pre-norm blocks, learned positions, the output weights those of the
// embedding. Parameters have GPT-2's names ("h.0.attn.c_attn.weight").
#pragma once
#include <string>

#include "ingot/nn.h"

namespace ingot::models {

/// The defaults are GPT-2 small (124M parameters).
struct GPTConfig {
  int64_t layers = 12;
  int64_t heads = 12;
  int64_t width = 768;     ///< a multiple of heads
  int64_t context = 1024;  ///< the longest sequence
  int64_t vocabulary = 50257;
  bool bias = true;  ///< in linear layers and norms
  double dropout = 0;
  std::string gelu = "tanh";  ///< or "none"
};

/// Causal self-attention with several heads: [batch, time, width] in and out.
class CausalSelfAttention : public nn::Module {
 public:
  explicit CausalSelfAttention(const GPTConfig& config, SourceLoc loc = SourceLoc::current());
  Tensor forward(Tensor x) override;

 private:
  int64_t heads_;
  double dropout_;
  nn::Linear qkv_, out_;
  nn::Dropout drop_;
};

/// x + attention(norm(x)), then x + mlp(norm(x)).
class GPTBlock : public nn::Module {
 public:
  explicit GPTBlock(const GPTConfig& config, SourceLoc loc = SourceLoc::current());
  Tensor forward(Tensor x) override;

 private:
  nn::LayerNorm norm1_, norm2_;
  CausalSelfAttention attention_;
  nn::Module mlp_;
  nn::Linear up_, down_;
  nn::Dropout drop_;
  std::string gelu_;
};

/// Token numbers [batch, time] in, logits [batch, time, vocabulary] out.
class GPT : public nn::Module {
 public:
  /// Throws Error(Value) for sizes below 1, a width that is no multiple of heads, or a dropout outside [0,
  /// 1].
  explicit GPT(const GPTConfig& config = {}, SourceLoc loc = SourceLoc::current());
  /// Throws Error(Shape) unless tokens has two dims and at most `context` columns.
  Tensor forward(Tensor tokens) override;
  const GPTConfig& config() const { return config_; }

 private:
  GPTConfig config_;
  nn::Embedding tokens_, positions_;
  nn::Dropout drop_;
  nn::ModuleList<GPTBlock> blocks_;
  nn::LayerNorm norm_;
};

}  // namespace ingot::models
