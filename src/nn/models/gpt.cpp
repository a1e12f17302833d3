// GPT: the blocks are a few calls each; nothing here is specific to a device. Initial values are
// GPT-2's: normal with standard deviation 0.02, divided by sqrt(2 * layers) in the two layers of a
// block that end in the residual sum.
#include <cmath>

#include "ingot/autograd.h"
#include "ingot/models.h"
#include "ops/cached_attention.h"
#include "ops/common.h"

namespace ingot::models {
namespace {

const GPTConfig& checked(const GPTConfig& c, const SourceLoc& where) {
  SourceLoc loc = user_loc(where);
  const std::pair<const char*, int64_t> sizes[] = {{"layers", c.layers},
                                                   {"heads", c.heads},
                                                   {"width", c.width},
                                                   {"context", c.context},
                                                   {"vocabulary", c.vocabulary}};
  for (const auto& [name, size] : sizes)
    if (size < 1)
      fail(ErrorKind::Value, "GPT",
           std::string(name) + " must be at least 1, not " + std::to_string(size), loc);
  if (c.width % c.heads != 0)
    fail(ErrorKind::Value, "GPT",
         "the width " + std::to_string(c.width) + " is not a multiple of the " +
             std::to_string(c.heads) + " heads",
         loc);
  return c;
}

nn::Linear projection(int64_t in, int64_t out, const GPTConfig& c, bool residual,
                      const SourceLoc& loc) {
  nn::Linear layer(in, out, {.bias = c.bias}, loc);
  const double std = residual ? 0.02 / std::sqrt(2.0 * static_cast<double>(c.layers)) : 0.02;
  nn::init::normal_(layer.weight(), 0, std);
  if (c.bias) nn::init::zeros_(layer.bias());
  return layer;
}

nn::LayerNorm norm(const GPTConfig& c, const SourceLoc& loc) {
  return nn::LayerNorm(Dims{c.width}, {.bias = c.bias}, loc);
}

}  // namespace

CausalSelfAttention::CausalSelfAttention(const GPTConfig& c, SourceLoc loc)
    : heads_(checked(c, loc).heads),
      dropout_(c.dropout),
      qkv_(add("c_attn", projection(c.width, 3 * c.width, c, false, loc))),
      out_(add("c_proj", projection(c.width, c.width, c, true, loc))),
      drop_(add("drop", nn::Dropout(c.dropout, loc))) {}

Tensor CausalSelfAttention::forward(Tensor x) {
  if (x.dim() != 3)
    fail(ErrorKind::Shape, "CausalSelfAttention",
         "expects [batch, time, width], not " + describe(x), user_loc(SourceLoc::current()));
  const int64_t batch = x.size(0), time = x.size(1), width = x.size(2);
  const auto split_heads = [&](const Tensor& t) {
    return t.view({batch, time, heads_, width / heads_}).transpose(1, 2);
  };
  const std::vector<Tensor> parts = qkv_(x).split(width, 2);
  Tensor y = scaled_dot_product_attention(
      split_heads(parts[0]), split_heads(parts[1]), split_heads(parts[2]),
      {.dropout_p = is_training() ? dropout_ : 0, .is_causal = true});
  return drop_(out_(y.transpose(1, 2).reshape({batch, time, width})));
}

Tensor CausalSelfAttention::with_cache(Tensor x, KVCache& cache, const Tensor& position,
                                       int64_t context) {
  const int64_t batch = x.size(0), time = x.size(1), width = x.size(2), head = width / heads_;
  const auto split_heads = [&](const Tensor& t) {
    return t.view({batch, time, heads_, head}).transpose(1, 2);
  };
  const std::vector<Tensor> parts = qkv_(x).split(width, 2);
  Tensor q = split_heads(parts[0]), k = split_heads(parts[1]), v = split_heads(parts[2]), y;
  if (!position.defined()) {
    cache = {pad(k, {0, 0, 0, context - time}), pad(v, {0, 0, 0, context - time})};
    y = scaled_dot_product_attention(q, k, v, {.is_causal = true});
  } else {
    Tensor places = arange(context, x.device()), at = position.to(int64);
    Tensor here = (places == at).reshape({1, 1, context, 1});
    y = cached_attention(q, cache.keys, cache.values, (places < at).reshape({1, 1, 1, context}), k,
                         v);
    // In place, and only at the token's position: a copy of the cache for every token would
    // dominate its cost.
    cache.keys.copy_(where(here, k, cache.keys));
    cache.values.copy_(where(here, v, cache.values));
    if (!y.defined())
      y = seeing_attention(q, cache.keys, cache.values,
                           {.mask = (places <= at).reshape({1, 1, 1, context})});
  }
  return out_(y.transpose(1, 2).reshape({batch, time, width}));
}

GPTBlock::GPTBlock(const GPTConfig& c, SourceLoc loc)
    : norm1_(add("ln_1", norm(checked(c, loc), loc))),
      norm2_(norm(c, loc)),
      attention_(add("attn", CausalSelfAttention(c, loc))),
      up_(mlp_.add("c_fc", projection(c.width, 4 * c.width, c, false, loc))),
      down_(mlp_.add("c_proj", projection(4 * c.width, c.width, c, true, loc))),
      drop_(mlp_.add("drop", nn::Dropout(c.dropout, loc))),
      gelu_(c.gelu) {
  register_module("ln_2", norm2_);
  register_module("mlp", mlp_);
}

Tensor GPTBlock::forward(Tensor x) {
  x = x + attention_(norm1_(x));
  return x + feed_forward(norm2_(x));
}

Tensor GPTBlock::feed_forward(const Tensor& x) { return drop_(down_(gelu(up_(x), gelu_))); }

Tensor GPTBlock::with_cache(Tensor x, KVCache& cache, const Tensor& position, int64_t context) {
  x = x + attention_.with_cache(norm1_(x), cache, position, context);
  return x + feed_forward(norm2_(x));
}

GPT::GPT(const GPTConfig& c, SourceLoc loc)
    : config_(checked(c, loc)),
      tokens_(add("wte", nn::Embedding(c.vocabulary, c.width, {}, loc))),
      positions_(add("wpe", nn::Embedding(c.context, c.width, {}, loc))),
      drop_(add("drop", nn::Dropout(c.dropout, loc))),
      blocks_(add("h", nn::ModuleList<GPTBlock>())),
      norm_(add("ln_f", norm(c, loc))) {
  for (const nn::Embedding& e : {tokens_, positions_}) nn::init::normal_(e.weight(), 0, 0.02);
  for (int64_t i = 0; i < c.layers; ++i) blocks_.push_back(GPTBlock(c, loc));
}

Tensor GPT::forward(Tensor index) {
  SourceLoc loc = user_loc(SourceLoc::current());
  if (index.dim() != 2 || index.size(1) > config_.context)
    fail(ErrorKind::Shape, "GPT",
         "expects tokens [batch, time] with at most " + std::to_string(config_.context) +
             " in a row, not " + describe(index),
         loc, "cut the sequence, or make the model with a longer context");
  Tensor x = drop_(tokens_(index) + positions_(arange(index.size(1), index.device())));
  for (GPTBlock& block : blocks_)
    x = config_.recompute && is_training()
            ? checkpoint([block](const std::vector<Tensor>& in) mutable { return block(in[0]); },
                         {x})
            : block(x);
  return linear(norm_(x), tokens_.weight());
}

GPTConfig gpt2_config(std::string_view name, SourceLoc loc) {
  GPTConfig c;
  if (name == "gpt2") return c;
  if (name == "gpt2-medium")
    c.layers = 24, c.heads = 16, c.width = 1024;
  else if (name == "gpt2-large")
    c.layers = 36, c.heads = 20, c.width = 1280;
  else if (name == "gpt2-xl")
    c.layers = 48, c.heads = 25, c.width = 1600;
  else
    fail(ErrorKind::Value, "gpt2_config", "there is no \"" + std::string(name) + "\"",
         user_loc(loc), "there are: gpt2, gpt2-medium, gpt2-large, gpt2-xl");
  return c;
}

// ---- Character LSTM

CharLSTM::CharLSTM(int64_t vocabulary, const CharLSTMOptions& o, SourceLoc loc)
    : embedding_(add("embedding", nn::Embedding(vocabulary, o.embedding, {}, loc))),
      lstm_(add(
          "lstm",
          nn::LSTM(o.embedding, o.hidden,
                   {.num_layers = o.num_layers, .batch_first = true, .dropout = o.dropout}, loc))),
      head_(add("head", nn::Linear(o.hidden, vocabulary, {}, loc))) {}

Tensor CharLSTM::forward(Tensor tokens) { return head_(lstm_(embedding_(tokens)).output); }

}  // namespace ingot::models
