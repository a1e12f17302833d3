// fit(), its callbacks and metrics; generation.
#include <cmath>
#include <memory>

#include "compile/executor.h"
#include "ingot/models.h"
#include "support/nn_check.h"

using namespace ingot;
using namespace ingot::check;

namespace {

struct Data {
  Tensor x, y;
  explicit Data(int64_t n = 120) {
    manual_seed(7);
    x = randn({n, 6});
    y = (x.narrow(1, 0, 3).sum(1) > 0.0).to(int64) + (x.select(1, 5) > 0.5).to(int64);
    eval({x, y});
  }
  data::DataLoader loader(int64_t batch, bool shuffle = false) const {
    return data::DataLoader(
        data::TensorDataset({x.cpu(), y.cpu()}),
        {.batch_size = batch, .shuffle = shuffle, .num_workers = 0, .device = default_device()});
  }
};

models::MLP net() {
  manual_seed(8);
  return models::MLP(6, 3, {.hidden = {16}});
}

}  // namespace

TEST_CASE("fit() does what a loop does, and reports losses and metrics") {
  Data d;
  models::MLP a = net(), b = net();
  optim::AdamW oa(a.parameters(), {.lr = 0.02}), ob(b.parameters(), {.lr = 0.02});
  data::DataLoader la = d.loader(30), lb = d.loader(30), test = d.loader(50);
  std::vector<std::shared_ptr<Metric>> wanted{metrics::accuracy(), metrics::top_k(2),
                                              metrics::perplexity(), metrics::confusion(3)};
  int64_t steps = 0;
  auto history = fit(a, la,
                     {.optimizer = &oa,
                      .epochs = 6,
                      .validation = &test,
                      .metrics = wanted,
                      .on_step = [&](int64_t n, const Tensor&) { steps = n; },
                      .progress = false});
  double mean = 0;
  for (int epoch = 0; epoch < 6; ++epoch) {
    mean = 0;
    for (auto [x, y] : lb) {
      Tensor loss = cross_entropy(b(x), y);
      loss.backward();
      ob.step();
      mean += loss.item() / 4;
    }
  }
  CHECK(steps == 24);
  CHECK(history.size() == 6);
  CHECK(history[5].loss == doctest::Approx(mean).epsilon(1e-6));
  CHECK(history[5].loss < 0.8 * history[0].loss);
  for (size_t i = 0; i < 4; ++i) CHECK(difference(a.parameters()[i], b.parameters()[i]) == 0);
  CHECK(a.is_training());
  // The metrics of the last validation, counted by hand.
  const std::vector<float> logits = b(d.x).to_vector<float>();
  const std::vector<int64_t> y = d.y.to_vector<int64_t>();
  double right = 0, two = 0, nll = 0;
  std::vector<int64_t> table(9, 0);
  for (size_t i = 0; i < y.size(); ++i) {
    const float* row = &logits[3 * i];
    int larger = 0;
    size_t best = 0;
    double sum = 0;
    for (size_t c = 0; c < 3; ++c) {
      larger += row[c] > row[y[i]];
      if (row[c] > row[best]) best = c;
      sum += std::exp(static_cast<double>(row[c]));
    }
    right += larger == 0, two += larger < 2;
    nll += std::log(sum) - static_cast<double>(row[y[i]]);
    ++table[static_cast<size_t>(3 * y[i]) + best];
  }
  const double n = static_cast<double>(y.size());
  CHECK(history[5].validation_metrics[0] == doctest::Approx(right / n));
  CHECK(history[5].validation_metrics[1] == doctest::Approx(two / n));
  CHECK(history[5].validation_metrics[2] == doctest::Approx(std::exp(nll / n)).epsilon(1e-5));
  CHECK(history[5].validation_metrics[3] == doctest::Approx(right / n));
  CHECK(dynamic_cast<metrics::Confusion&>(*wanted[3]).matrix().to_vector<int64_t>() == table);
  CHECK(*history[5].validation_loss > 0);
}

TEST_CASE("fit(): accumulation, clipping, schedules, an early end, mistakes") {
  Data d;
  models::MLP a = net(), b = net();
  optim::SGD oa(a.parameters(), {.lr = 0.1}), ob(b.parameters(), {.lr = 0.1});
  data::DataLoader whole = d.loader(60), parts = d.loader(20);
  fit(a, whole, {.optimizer = &oa, .epochs = 3, .clip_grad_norm = 0.5, .progress = false});
  fit(b, parts,
      {.optimizer = &ob, .epochs = 3, .accumulate = 3, .clip_grad_norm = 0.5, .progress = false});
  for (size_t i = 0; i < 4; ++i) CHECK(difference(a.parameters()[i], b.parameters()[i]) < 1e-5);
  optim::StepLR schedule(oa, 1, 0.5);
  auto history = fit(a, whole,
                     {.optimizer = &oa,
                      .epochs = 5,
                      .scheduler = &schedule,
                      .on_epoch = [](const EpochRecord& r) { return r.epoch < 2; },
                      .progress = false});
  CHECK(history.size() == 3);
  CHECK(oa.lr() == doctest::Approx(0.1 / 8));
  optim::ReduceLROnPlateau plateau(
      ob, {.factor = 0.5, .patience = 0, .threshold = 10, .threshold_mode = "abs"});
  fit(b, whole, {.optimizer = &ob, .epochs = 3, .scheduler = &plateau, .progress = false});
  CHECK(ob.lr() == doctest::Approx(0.025));
  CHECK(contains(message([&] { fit(a, whole, {}); }, ErrorKind::Value), "optimizer"));
  CHECK(contains(
      message([&] { fit(a, whole, {.optimizer = &oa, .accumulate = 0}); }, ErrorKind::Value),
      "accumulate"));
  CHECK(contains(message(
                     [&] {
                       metrics::accuracy()->update(ones({2, 3}), ones({3}, int64));
                     },
                     ErrorKind::Shape),
                 "does not fit"));
  CHECK(contains(message([&] { (void)metrics::top_k(0); }, ErrorKind::Value), "k must"));
}

TEST_CASE("fit() in 16 bits: both types learn, and a guard goes with bfloat16") {
  Data d;
  for (DType type : {bfloat16, float16}) {
    models::MLP m = net();
    optim::AdamW o(m.parameters(), {.lr = 0.02});
    data::DataLoader train = d.loader(30);
    FitOptions options{.optimizer = &o, .epochs = 6, .autocast = type, .progress = false};
    if (type == bfloat16) options.non_finite = optim::NonFinite::Skip;
    auto history = fit(m, train, options);
    CHECK(history[5].loss < 0.85 * history[0].loss);
    options.non_finite = optim::NonFinite::Skip;
    if (type == float16)
      CHECK(contains(message([&] { fit(m, train, options); }, ErrorKind::State), "GradScaler"));
  }
}

TEST_CASE("GPT-2's sizes") {
  CHECK(models::gpt2_config("gpt2").layers == 12);
  CHECK(models::gpt2_config("gpt2-xl").width == 1600);
  CHECK(
      contains(message([] { (void)models::gpt2_config("gpt3"); }, ErrorKind::Value), "gpt2-large"));
  const Device before = default_device();
  set_default_device("null");
  CHECK(models::GPT(models::gpt2_config("gpt2-medium")).parameter_count() == 354823168);
  set_default_device(before);
}

TEST_CASE("generation: the cache gives what a whole forward gives, in one plan for all tokens") {
  manual_seed(9);
  models::GPT gpt({.layers = 2, .heads = 2, .width = 16, .context = 24, .vocabulary = 11});
  {
    NoGrad guard;
    for (Tensor p : gpt.parameters())
      p.mul_(8.0).eval_();  // otherwise all tokens are nearly equally likely
  }
  Tensor start = tensor({{1, 2, 3}, {4, 5, 6}});
  const auto with = gpt.generate(start, {.max_new_tokens = 20, .temperature = 0});
  const auto without =
      gpt.generate(start, {.max_new_tokens = 20, .temperature = 0, .use_cache = false});
  CHECK(with.shape() == Dims{2, 23});
  CHECK(with.to_vector<int64_t>() == without.to_vector<int64_t>());
  CHECK(with.narrow(1, 0, 3).to_vector<int64_t>() == start.to_vector<int64_t>());
  const int64_t before = plan_stats().compiled;
  gpt.generate(start, {.max_new_tokens = 20, .temperature = 0});
  CHECK(
      plan_stats().compiled ==
      before);  // nothing is new the second time, and the first time took two plans for 20 tokens:
  clear_plan_cache();
  const int64_t cleared = plan_stats().compiled;
  gpt.generate(start, {.max_new_tokens = 20, .temperature = 0});
  CHECK(plan_stats().compiled - cleared <= 6);
  // A token takes no extra memory, whatever is asked for, and inside a capture it is part of
  // that.
  for (const models::GenerateOptions& o :
       {models::GenerateOptions{.temperature = 0},
        {.top_k = 3, .top_p = 0.9, .eos_token = 10, .seed = 3}}) {
    const auto taken = [&](int64_t n) {
      models::GenerateOptions more = o;
      more.max_new_tokens = n;
      more.read_every = 100;
      const size_t begin = default_device().memory().allocations;
      gpt.generate(start, more);
      return default_device().memory().allocations - begin;
    };
    CHECK(taken(3) > 0);
    CHECK(taken(20) == taken(3));
  }
  Captured generated = capture([&](const std::vector<Tensor>& in) {
    return std::vector<Tensor>{gpt.generate(in[0], {.max_new_tokens = 4, .temperature = 0})};
  });
  for (int i = 0; i < 3; ++i)
    CHECK(generated({start})[0].to_vector<int64_t>() == with.narrow(1, 0, 7).to_vector<int64_t>());
  // Drawing: a seed repeats, top_k = 1 is the likeliest, top_p leaves out what is unlikely.
  const auto drawn = [&](uint64_t seed, int64_t k, double p) {
    return gpt
        .generate(start,
                  {.max_new_tokens = 20, .temperature = 1.5, .top_k = k, .top_p = p, .seed = seed})
        .to_vector<int64_t>();
  };
  CHECK(drawn(3, 0, 1) == drawn(3, 0, 1));
  CHECK(drawn(3, 0, 1) != drawn(4, 0, 1));
  CHECK(drawn(5, 1, 1) == with.to_vector<int64_t>());
  CHECK(drawn(5, 0, 1e-9) == with.to_vector<int64_t>());
  const int64_t stop = with.to_vector<int64_t>()[3];
  CHECK(gpt.generate(start.narrow(0, 0, 1),
                     {.max_new_tokens = 20, .temperature = 0, .eos_token = stop})
            .size(1) == 4);
  // The tokens as they come, read in blocks; false ends. In rows that have ended the eos token goes
  // on.
  for (const int64_t every : {1, 3, 20}) {
    std::vector<int64_t> seen;
    const auto take = [&](const std::vector<int64_t>& t) {
      CHECK(t.size() == 2);
      seen.push_back(t[1]);
      return seen.size() < 7;
    };
    const Tensor part = gpt.generate(
        start, {.max_new_tokens = 20, .temperature = 0, .on_tokens = take, .read_every = every});
    CHECK(part.shape() == Dims{2, 10});
    CHECK(part.to_vector<int64_t>() == with.narrow(1, 0, 10).to_vector<int64_t>());
    CHECK(part[1].narrow(0, 3, 7).to_vector<int64_t>() == seen);
    const Tensor ended = gpt.generate(
        start, {.max_new_tokens = 20, .temperature = 0, .eos_token = stop, .read_every = every});
    CHECK((ended[0].narrow(0, 3, ended.size(1) - 3) == stop).all().item<bool>());
    CHECK(difference(ended[1], with[1].narrow(0, 0, ended.size(1))) == 0);
  }
  CHECK(gpt.is_training());
  CHECK(contains(message([&] { gpt.generate(start, {.read_every = 0}); }, ErrorKind::Value),
                 "read_every"));
  CHECK(contains(message([&] { gpt.generate(start, {.max_new_tokens = 22}); }, ErrorKind::Shape),
                 "context of 24"));
  CHECK(contains(message([&] { gpt.generate(start, {.top_p = 0}); }, ErrorKind::Value), "top_p"));
}

TEST_CASE(
    "generation draws each token as often as it is likely, among those that top_k and top_p "
    "leave") {
  manual_seed(10);
  models::GPT gpt({.layers = 1, .heads = 2, .width = 16, .context = 4, .vocabulary = 7});
  {
    NoGrad guard;
    for (Tensor p : gpt.parameters()) p.mul_(5.0).eval_();
  }
  const int64_t rows = 20000;
  const Tensor start = tensor({{1, 2}}).expand({rows, 2});
  gpt.eval();
  const std::vector<float> logits = gpt(tensor({{1, 2}}))[{0, 1}].to(float32).to_vector<float>();
  for (const auto& [k, p] : {std::pair<int64_t, double>{0, 1.0}, {4, 1.0}, {0, 0.7}, {5, 0.8}}) {
    std::vector<size_t> order{0, 1, 2, 3, 4, 5, 6};
    std::sort(order.begin(), order.end(),
              [&](size_t a, size_t b) { return logits[a] > logits[b]; });
    if (k) order.resize(static_cast<size_t>(k));
    std::vector<double> weight(7, 0.0);
    double sum = 0, together = 0, kept = 0;
    for (size_t i : order) sum += std::exp(logits[i] / 1.5);
    for (size_t i : order) {
      if (together >= p * sum) break;
      together += weight[i] = std::exp(logits[i] / 1.5);
    }
    kept = together;
    const auto drawn =
        gpt.generate(start,
                     {.max_new_tokens = 1, .temperature = 1.5, .top_k = k, .top_p = p, .seed = 5})
            .select(1, 2)
            .to_vector<int64_t>();
    std::vector<double> count(7, 0.0);
    for (int64_t t : drawn) count.at(static_cast<size_t>(t)) += 1.0 / rows;
    for (size_t i = 0; i < 7; ++i) {
      CHECK(count[i] == doctest::Approx(weight[i] / kept).epsilon(0.02));
      if (weight[i] == 0) CHECK(count[i] == 0);
    }
  }
}
