// GPT: the blocks are a few calls each; nothing here is special to a device. Initial values are GPT-2's:
// normal with deviation 0.02, and smaller by sqrt(2 * layers) in the two layers of a block that end in the
// residual sum.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "ingot/autograd.h"
#include "ingot/models.h"
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
      fail(ErrorKind::Value, "GPT", std::string(name) + " must be at least 1, not " + std::to_string(size),
           loc);
  if (c.width % c.heads != 0)
    fail(ErrorKind::Value, "GPT",
         "the width " + std::to_string(c.width) + " is not a multiple of the " + std::to_string(c.heads) +
             " heads",
         loc);
  return c;
}

nn::Linear projection(int64_t in, int64_t out, const GPTConfig& c, bool residual, const SourceLoc& loc) {
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
    fail(ErrorKind::Shape, "CausalSelfAttention", "wants [batch, time, width], not " + describe(x),
         user_loc(SourceLoc::current()));
  const int64_t batch = x.size(0), time = x.size(1), width = x.size(2);
  const auto split_heads = [&](const Tensor& t) {
    return t.view({batch, time, heads_, width / heads_}).transpose(1, 2);
  };
  const std::vector<Tensor> parts = qkv_(x).split(width, 2);
  Tensor y = scaled_dot_product_attention(split_heads(parts[0]), split_heads(parts[1]), split_heads(parts[2]),
                                          {.dropout_p = is_training() ? dropout_ : 0, .is_causal = true});
  return drop_(out_(y.transpose(1, 2).reshape({batch, time, width})));
}

Tensor CausalSelfAttention::with_cache(Tensor x, KVCache& cache, const Tensor& position, int64_t context) {
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
    cache = {where(here, k, cache.keys), where(here, v, cache.values)};
    y = scaled_dot_product_attention(q, cache.keys, cache.values,
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
         "wants tokens [batch, time] with at most " + std::to_string(config_.context) + " in a row, not " +
             describe(index),
         loc, "cut the sequence, or make the model with a longer context");
  Tensor x = drop_(tokens_(index) + positions_(arange(index.size(1), index.device())));
  for (GPTBlock& block : blocks_) x = block(x);
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
    fail(ErrorKind::Value, "gpt2_config", "there is no \"" + std::string(name) + "\"", user_loc(loc),
         "there are: gpt2, gpt2-medium, gpt2-large, gpt2-xl");
  return c;
}

// ---- Generation

namespace {

// The number drawn from one row of logits by u in [0, 1).
int64_t draw(const float* logits, size_t n, const GenerateOptions& o, double u) {
  std::vector<size_t> order(n);
  std::iota(order.begin(), order.end(), size_t{0});
  const auto larger = [&](size_t a, size_t b) {
    return logits[a] > logits[b] || (logits[a] == logits[b] && a < b);
  };
  if (o.temperature == 0) return static_cast<int64_t>(*std::min_element(order.begin(), order.end(), larger));
  size_t kept = o.top_k > 0 ? std::min(n, static_cast<size_t>(o.top_k)) : n;
  if (kept < n || o.top_p < 1)
    std::partial_sort(order.begin(), order.begin() + static_cast<int64_t>(kept), order.end(), larger);
  const float most = *std::max_element(logits, logits + n);
  std::vector<double> weight(kept);
  double sum = 0;
  for (size_t i = 0; i < kept; ++i)
    sum += weight[i] = std::exp((static_cast<double>(logits[order[i]]) - most) / o.temperature);
  if (o.top_p < 1) {
    double together = 0;
    size_t i = 0;
    while (i < kept && together < o.top_p * sum) together += weight[i++];
    kept = i;
    sum = together;
  }
  u *= sum;
  for (size_t i = 0; i < kept; ++i) {
    if (u < weight[i]) return static_cast<int64_t>(order[i]);
    u -= weight[i];
  }
  return static_cast<int64_t>(order[kept - 1]);
}

void check(const Tensor& tokens, const GenerateOptions& o, int64_t context, const SourceLoc& loc) {
  if (!(o.temperature >= 0) || o.top_k < 0 || !(o.top_p > 0 && o.top_p <= 1) || o.max_new_tokens < 0)
    fail(ErrorKind::Value, "generate",
         "temperature, top_k and max_new_tokens must not be negative and top_p lie in (0, 1]", loc);
  if (tokens.dim() != 2 || tokens.size(1) < 1 || tokens.size(1) + o.max_new_tokens > context)
    fail(ErrorKind::Shape, "generate",
         "wants tokens [batch, time], and " + std::to_string(o.max_new_tokens) +
             " more must fit into the context of " + std::to_string(context) + ", not " + describe(tokens),
         loc, "cut the beginning off, or ask for fewer");
}

}  // namespace

Tensor GPT::generate(Tensor tokens, const GenerateOptions& o, SourceLoc where) {
  SourceLoc loc = user_loc(where);
  LocScope scope(loc);
  NoGrad guard;
  check(tokens, o, config_.context, loc);
  const bool training = is_training();
  eval();
  const int64_t batch = tokens.size(0), start = tokens.size(1);
  const Device device = tokens_.weight().device();
  const Generator generator = o.seed ? Generator(*o.seed) : default_generator();
  std::vector<int64_t> all = tokens.to_vector<int64_t>();
  std::vector<std::vector<int64_t>> rows(static_cast<size_t>(batch));
  for (size_t b = 0; b < rows.size(); ++b)
    rows[b].assign(all.begin() + static_cast<int64_t>(b) * start,
                   all.begin() + static_cast<int64_t>(b + 1) * start);
  std::vector<KVCache> caches(blocks_.size());
  std::vector<bool> ended(rows.size(), false);

  for (int64_t made = 0; made < o.max_new_tokens; ++made) {
    const int64_t length = start + made;
    const bool first = made == 0, cached = o.use_cache && !first;
    std::vector<int64_t> in;
    for (const auto& r : rows) in.insert(in.end(), cached ? r.end() - 1 : r.begin(), r.end());
    Tensor index = tensor(in, {batch, cached ? 1 : length}).to(device);
    Tensor position = cached ? argument(static_cast<double>(length - 1), {float64, device}) : Tensor();
    Tensor x = tokens_(index) + positions_(cached ? position.to(int64).reshape({1}) : arange(length, device));
    for (size_t i = 0; i < blocks_.size(); ++i) {
      if (o.use_cache)
        x = blocks_[i].with_cache(x, caches[i], position, config_.context);
      else
        x = blocks_[i](x);
    }
    Tensor logits = linear(norm_(x.narrow(1, x.size(1) - 1, 1)), tokens_.weight())
                        .reshape({batch, config_.vocabulary})
                        .to(float32);
    const std::vector<float> values = logits.to_vector<float>();
    const std::vector<double> u = rand({batch}, float64, generator).to_vector<double>();
    bool open = false;
    for (size_t b = 0; b < rows.size(); ++b) {
      const size_t n = static_cast<size_t>(config_.vocabulary);
      rows[b].push_back(ended[b] ? *o.eos_token : draw(values.data() + b * n, n, o, u[b]));
      ended[b] = ended[b] || (o.eos_token && rows[b].back() == *o.eos_token);
      open = open || !ended[b];
    }
    if (!open) break;
  }
  train(training);
  all.clear();
  for (const auto& r : rows) all.insert(all.end(), r.begin(), r.end());
  return tensor(all, {batch, static_cast<int64_t>(rows[0].size())}).to(tokens.device());
}

// ---- Character LSTM

CharLSTM::CharLSTM(int64_t vocabulary, const CharLSTMOptions& o, SourceLoc loc)
    : embedding_(add("embedding", nn::Embedding(vocabulary, o.embedding, {}, loc))),
      lstm_(add("lstm",
                nn::LSTM(o.embedding, o.hidden,
                         {.num_layers = o.num_layers, .batch_first = true, .dropout = o.dropout}, loc))),
      head_(add("head", nn::Linear(o.hidden, vocabulary, {}, loc))) {}

Tensor CharLSTM::forward(Tensor tokens) { return head_(lstm_(embedding_(tokens)).output); }

}  // namespace ingot::models
