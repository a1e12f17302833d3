// GPT is GPT-2's architecture: pre-norm blocks, learned positions, the output weights those of the
// embedding. Parameters have GPT-2's names ("h.0.attn.c_attn.weight").
#pragma once
#include <optional>
#include <string>
#include <string_view>

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
  bool recompute =
      false;  ///< in training, blocks keep only their inputs and are recomputed by backward()
};

/// "gpt2" (124M parameters), "gpt2-medium" (355M), "gpt2-large" (774M) or "gpt2-xl" (1558M);
/// Error(Value) for another name.
GPTConfig gpt2_config(std::string_view name, SourceLoc loc = SourceLoc::current());

/// Keys and values of the tokens so far, [batch, heads, context, width / heads]: of fixed size and
/// changed in place, so that every new token has one plan that writes one position.
struct KVCache {
  Tensor keys, values;
};

/// Causal self-attention with several heads: [batch, time, width] in and out.
class CausalSelfAttention : public nn::Module {
 public:
  explicit CausalSelfAttention(const GPTConfig& config, SourceLoc loc = SourceLoc::current());
  Tensor forward(Tensor x) override;
  /// x is the beginning (position undefined: fills the cache) or one token at `position` (0-d, any
  /// number type).
  Tensor with_cache(Tensor x, KVCache& cache, const Tensor& position, int64_t context);

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
  Tensor with_cache(Tensor x, KVCache& cache, const Tensor& position, int64_t context);

 private:
  Tensor feed_forward(const Tensor& x);
  nn::LayerNorm norm1_, norm2_;
  CausalSelfAttention attention_;
  nn::Module mlp_;
  nn::Linear up_, down_;
  nn::Dropout drop_;
  std::string gelu_;
};

struct GenerateOptions {
  int64_t max_new_tokens = 100;
  double temperature = 1;              ///< 0: always the most likely
  int64_t top_k = 0;                   ///< only the k most likely; 0: all
  double top_p = 1;                    ///< only the most likely that together have this probability
  std::optional<int64_t> eos_token{};  ///< ends when every row has one
  std::optional<uint64_t> seed{};      ///< when not given, the default generator
  bool use_cache = true;
  /// Called with the new token of each row, in order; false ends the generation there.
  std::function<bool(const std::vector<int64_t>&)> on_tokens{};
  /// With eos_token or on_tokens: this many tokens are sampled before the program reads them.
  /// Without, it reads at the end.
  int64_t read_every = 8;
};

/// Token indices [batch, time] in, logits [batch, time, vocabulary] out.
class GPT : public nn::Module {
 public:
  /// Throws Error(Value) for sizes below 1, a width that is not a multiple of heads, or a dropout
  /// outside [0, 1].
  explicit GPT(const GPTConfig& config = {}, SourceLoc loc = SourceLoc::current());
  /// Throws Error(Shape) unless tokens has two dims and at most `context` columns.
  Tensor forward(Tensor tokens) override;
  const GPTConfig& config() const { return config_; }
  /// The tokens followed by new ones sampled one after the other. With the cache, every new token
  /// repeats one captured run, its position an argument, and the program does not wait for it.
  /// Without gradients and dropout. Throws Error(Shape) unless tokens is [batch, time] with time at
  /// least 1 and room for the new ones in the context, Error(Value) for a negative temperature or
  /// top_k, or a top_p outside (0, 1].
  Tensor generate(Tensor tokens, const GenerateOptions& options = {},
                  SourceLoc loc = SourceLoc::current());

 private:
  Tensor last_logits(const Tensor& tokens, const Tensor& places, std::vector<KVCache>& caches,
                     const Tensor& position);
  GPTConfig config_;
  nn::Embedding tokens_, positions_;
  nn::Dropout drop_;
  nn::ModuleList<GPTBlock> blocks_;
  nn::LayerNorm norm_;
};

struct CharLSTMOptions {
  int64_t embedding = 64;
  int64_t hidden = 128;
  int64_t num_layers = 2;
  double dropout = 0;
};
/// Characters [batch, time] in, logits of the next ones [batch, time, vocabulary] out.
class CharLSTM : public nn::Module {
 public:
  explicit CharLSTM(int64_t vocabulary, const CharLSTMOptions& options = {},
                    SourceLoc loc = SourceLoc::current());
  Tensor forward(Tensor tokens) override;

 private:
  nn::Embedding embedding_;
  nn::LSTM lstm_;
  nn::Linear head_;
};

}  // namespace ingot::models
