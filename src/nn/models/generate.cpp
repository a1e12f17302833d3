// Generation: every new token is sampled on the model's device, in the plan that computes its
// logits; the program reads them in blocks, so that the device does not wait at every token.
// Tokens, caches and samples are updated in place and the position is an argument, so that from the
// third token on the run of the second is repeated without recording anything.
#include "ingot/autograd.h"
#include "ingot/capture.h"
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
  // The first whose cumulative probability exceeds u; rounding must not select one past the last
  // candidate.
  const Tensor at = (cumsum(weight, -1) <= u * weight.sum({-1}, true)).to(int64).sum({-1}, true);
  if (!index.defined()) return clamp_max(at, n - 1);
  // Selected by a sum and not by gather(), which may fail: caches could only be written
  // after an op that may fail.
  const Tensor pick = minimum(at, (weight > 0.0).to(int64).sum({-1}, true) - 1);
  return where(arange(index.size(1), index.device()) == pick, index, 0).sum({-1}, true);
}

// A 0-d float64 whose value is read again in every repeated run.
Tensor argument_at(const std::shared_ptr<double>& source, const Device& device,
                   const SourceLoc& loc) {
  return tensor_of(record_argument(source, float64, device, loc));
}

void check(const Tensor& tokens, const GenerateOptions& o, int64_t context, const SourceLoc& loc) {
  if (!(o.temperature >= 0) || o.top_k < 0 || !(o.top_p > 0 && o.top_p <= 1) ||
      o.max_new_tokens < 0)
    fail(ErrorKind::Value, "generate",
         "temperature, top_k and max_new_tokens must not be negative and top_p must be in (0, 1]",
         loc);
  if (o.read_every < 1)
    fail(ErrorKind::Value, "generate",
         "read_every must be at least 1, not " + std::to_string(o.read_every), loc);
  if (tokens.dim() != 2 || tokens.size(1) < 1 || tokens.size(1) + o.max_new_tokens > context)
    fail(ErrorKind::Shape, "generate",
         "expects tokens [batch, time], and " + std::to_string(o.max_new_tokens) +
             " more must fit into the context of " + std::to_string(context) + ", not " +
             describe(tokens),
         loc, "cut the beginning off, or generate fewer");
}

// The sampled tokens as the program knows them: reads the new ones and returns whether to continue.
class Reader {
 public:
  Reader(const GenerateOptions& o, int64_t batch)
      : o_(o), ended_(static_cast<size_t>(batch), false) {}

  // out [batch, max_new_tokens], of which the first `made` columns are written.
  bool read(const Tensor& out, int64_t made) {
    const std::vector<int64_t> all = out.to_vector<int64_t>();
    for (; kept_ < made; ++kept_) {
      std::vector<int64_t> column;
      bool open = !o_.eos_token;
      for (size_t b = 0; b < ended_.size(); ++b) {
        column.push_back(
            all[b * static_cast<size_t>(o_.max_new_tokens) + static_cast<size_t>(kept_)]);
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

// The state of a generation on the model's device.
struct Drawn {
  Tensor out;           // [batch, max_new_tokens]
  Tensor next, ended;   // [batch, 1]: the last token of each row; whether it has had an eos_token
  Generator generator;  // u for every sample

  // Stores the tokens sampled from logits [batch, vocabulary] as column `column` (0-d) of the new
  // ones. Once they exist, all handles are updated in place.
  void take(const Tensor& logits, const Tensor& column, const GenerateOptions& o) {
    const Device device = logits.device();
    Tensor now =
        draw(logits.to(float32), o, rand({logits.size(0), 1}, {float64, device}, generator));
    if (o.eos_token) {
      now = ingot::where(ended, *o.eos_token, now);
      ended.copy_(ended | (now == *o.eos_token));
    }
    out.copy_(ingot::where(arange(o.max_new_tokens, device) == column, now, out));
    if (next.defined())
      next.copy_(now);
    else
      next = now;
  }
};

}  // namespace

Tensor GPT::last_logits(const Tensor& index, const Tensor& places, std::vector<KVCache>& caches,
                        const Tensor& position) {
  Tensor x = tokens_(index) + positions_(places);
  for (size_t i = 0; i < blocks_.size(); ++i)
    x = caches.empty() ? blocks_[i](x)
                       : blocks_[i].with_cache(x, caches[i], position, config_.context);
  return linear(norm_(x.narrow(1, x.size(1) - 1, 1)), tokens_.weight())
      .reshape({index.size(0), config_.vocabulary});
}

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
  tokens = tokens.to(int64).to(device);
  Drawn drawn{zeros({batch, most}, {int64, device}),
              {},
              zeros({batch, 1}, {DType::Bool, device}),
              o.seed ? Generator(*o.seed) : default_generator()};
  std::vector<KVCache> caches(o.use_cache ? blocks_.size() : 0);
  auto at = std::make_shared<double>(0);
  const bool within = is_capturing();  // inside an outer capture all tokens are part of it
  const auto one = [&](const std::vector<Tensor>&) {
    const Tensor position =
        within ? argument(*at, {float64, device}) : argument_at(at, device, loc);
    const Tensor place = position.to(int64);
    drawn.take(last_logits(drawn.next, place.reshape({1}), caches, position), place - (start - 1),
               o);
    return std::vector<Tensor>{};
  };
  Captured another(one);
  Reader reader(o, batch);
  const bool reads = o.eos_token || o.on_tokens;
  int64_t made = 0;
  for (bool open = true; open && made < most;) {
    *at = static_cast<double>(start + made - 1);
    if (o.use_cache && made > 0) {
      within ? one({}) : another({}, loc);
    } else {
      const Tensor index = made == 0 ? tokens : cat({tokens, drawn.out.narrow(1, 0, made)}, 1);
      drawn.take(last_logits(index, arange(start + made, device), caches, {}),
                 full({}, made, {int64, device}), o);
    }
    if (made == 0 || !o.use_cache || within) {
      std::vector<Tensor> state{drawn.out, drawn.next, drawn.ended};
      for (const KVCache& c : caches) state.insert(state.end(), {c.keys, c.values});
      ingot::eval(state, loc);
    }
    ++made;
    if (reads && (made % o.read_every == 0 || made == most)) open = reader.read(drawn.out, made);
  }
  if (reads) made = reader.kept();
  return cat({tokens, drawn.out.narrow(1, 0, made)}, 1).to(home);
}

}  // namespace ingot::models
