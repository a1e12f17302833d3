// Generation: every new token is drawn where the model is, in the plan that computes its logits; the program
// reads them in blocks, so that the device is not kept waiting token by token.
#include "ingot/autograd.h"
#include "ingot/models.h"
#include "ingot/runtime.h"
#include "ingot/sorting.h"
#include "ops/common.h"

namespace ingot::models {
namespace {

// One token for each row of logits [batch, vocabulary], by u [batch, 1] in [0, 1): [batch, 1].
Tensor draw(const Tensor& logits, const GenerateOptions& o, const Tensor& u) {
  const int64_t n = logits.size(1);
  if (o.temperature == 0) return argmax(logits, -1, true);
  Tensor values = logits, index;
  if (o.top_k > 0 || o.top_p < 1) {
    const ValuesIndices best = topk(logits, o.top_k > 0 ? std::min(o.top_k, n) : n, -1);
    values = best.values, index = best.indices;
  }
  values = values.to(float64);
  Tensor weight = exp((values - values.amax({-1}, true)) / o.temperature);
  if (o.top_p < 1) {
    const Tensor up_to = cumsum(weight, -1);
    weight = where(up_to - weight < weight.sum({-1}, true) * o.top_p, weight, 0.0);
  }
  // The first whose share reaches beyond u; rounding must not lead behind the last that counts.
  const Tensor at = (cumsum(weight, -1) <= u * weight.sum({-1}, true)).to(int64).sum({-1}, true);
  if (!index.defined()) return clamp_max(at, n - 1);
  return index.gather(1, minimum(at, (weight > 0.0).to(int64).sum({-1}, true) - 1));
}

void check(const Tensor& tokens, const GenerateOptions& o, int64_t context, const SourceLoc& loc) {
  if (!(o.temperature >= 0) || o.top_k < 0 || !(o.top_p > 0 && o.top_p <= 1) || o.max_new_tokens < 0)
    fail(ErrorKind::Value, "generate",
         "temperature, top_k and max_new_tokens must not be negative and top_p lie in (0, 1]", loc);
  if (o.read_every < 1)
    fail(ErrorKind::Value, "generate", "read_every must be at least 1, not " + std::to_string(o.read_every),
         loc);
  if (tokens.dim() != 2 || tokens.size(1) < 1 || tokens.size(1) + o.max_new_tokens > context)
    fail(ErrorKind::Shape, "generate",
         "wants tokens [batch, time], and " + std::to_string(o.max_new_tokens) +
             " more must fit into the context of " + std::to_string(context) + ", not " + describe(tokens),
         loc, "cut the beginning off, or ask for fewer");
}

// What has been drawn, as the program knows it: reads the new tokens and says whether to go on.
class Reader {
 public:
  Reader(const GenerateOptions& o, int64_t batch) : o_(o), ended_(static_cast<size_t>(batch), false) {}

  // out [batch, max_new_tokens], of which the first `made` columns are there.
  bool read(const Tensor& out, int64_t made) {
    const std::vector<int64_t> all = out.to_vector<int64_t>();
    for (; kept_ < made; ++kept_) {
      std::vector<int64_t> column;
      bool open = !o_.eos_token;
      for (size_t b = 0; b < ended_.size(); ++b) {
        column.push_back(all[b * static_cast<size_t>(o_.max_new_tokens) + static_cast<size_t>(kept_)]);
        ended_[b] = ended_[b] || (o_.eos_token && column.back() == *o_.eos_token);
        open = open || !ended_[b];
      }
      if (o_.on_tokens && !o_.on_tokens(column)) open = false;
      if (!open) return ++kept_, false;
    }
    return true;
  }
  int64_t kept() const { return kept_; }

 private:
  const GenerateOptions& o_;
  std::vector<bool> ended_;
  int64_t kept_ = 0;
};

}  // namespace

Tensor GPT::generate(Tensor tokens, const GenerateOptions& o, SourceLoc where) {
  SourceLoc loc = user_loc(where);
  LocScope scope(loc);
  NoGrad guard;
  check(tokens, o, config_.context, loc);
  if (o.max_new_tokens == 0) return tokens;
  struct Mode {  // also when on_tokens throws
    GPT& model;
    bool training;
    ~Mode() { model.train(training); }
  } mode{*this, is_training()};
  eval();
  const int64_t batch = tokens.size(0), start = tokens.size(1), most = o.max_new_tokens;
  const Device device = tokens_.weight().device(), home = tokens.device();
  const Generator generator = o.seed ? Generator(*o.seed) : default_generator();
  tokens = tokens.to(int64).to(device);
  Tensor out = zeros({batch, most}, {int64, device}), ended = zeros({batch, 1}, {DType::Bool, device}), next;
  std::vector<KVCache> caches(o.use_cache ? blocks_.size() : 0);
  Reader reader(o, batch);
  const bool reads = o.eos_token || o.on_tokens;
  int64_t made = 0;
  for (bool open = true; open && made < most;) {
    const int64_t length = start + made;
    const bool cached = o.use_cache && made > 0;
    Tensor index = cached ? next : made == 0 ? tokens : cat({tokens, out.narrow(1, 0, made)}, 1);
    Tensor position = cached ? argument(static_cast<double>(length - 1), {float64, device}) : Tensor();
    Tensor x = tokens_(index) + positions_(cached ? position.to(int64).reshape({1}) : arange(length, device));
    for (size_t i = 0; i < blocks_.size(); ++i)
      x = o.use_cache ? blocks_[i].with_cache(x, caches[i], position, config_.context) : blocks_[i](x);
    const Tensor logits = linear(norm_(x.narrow(1, x.size(1) - 1, 1)), tokens_.weight())
                              .reshape({batch, config_.vocabulary})
                              .to(float32);
    next = draw(logits, o, rand({batch, 1}, {float64, device}, generator));
    if (o.eos_token) {
      next = ingot::where(ended, *o.eos_token, next);
      ended = ended | (next == *o.eos_token);
    }
    const Tensor column = cached ? position.to(int64) - (start - 1) : full({}, made, {int64, device});
    out = ingot::where(arange(most, device) == column, next, out);
    std::vector<Tensor> made_now{out, next, ended};
    for (const KVCache& c : caches) made_now.insert(made_now.end(), {c.keys, c.values});
    ingot::eval(made_now, loc);
    ++made;
    if (reads && (made % o.read_every == 0 || made == most)) open = reader.read(out, made);
  }
  if (reads) made = reader.kept();
  return cat({tokens, out.narrow(1, 0, made)}, 1).to(home);
}

}  // namespace ingot::models
