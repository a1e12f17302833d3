// StateDict, and the state of optimisers and scalers taken from one object and given to another.
#include <doctest/doctest.h>
#include <ingot/ingot.h>

#include <cmath>
#include <limits>

using namespace ingot;

namespace {

Tensor parameter(const Dims& shape, uint64_t seed) {
  Tensor t = randn(shape, {}, Generator(seed)).eval_();
  return t.requires_grad_();
}

void train(optim::Optimizer& o, const Tensor& p, int steps) {
  for (int i = 0; i < steps; ++i) {
    (p * p * (1.0 + i)).sum().backward();
    o.step();
  }
}

}  // namespace

TEST_CASE("values read back exactly, and say what is missing") {
  StateDict d;
  for (double v : {0.1, -1e-300, 1.0 / 3, std::numeric_limits<double>::infinity(), 5e-324}) {
    d.set("v", v);
    CHECK(d.number("v") == v);
  }
  d.set("n", std::numeric_limits<double>::quiet_NaN());
  CHECK(std::isnan(d.number("n")));
  d.set("i", int64_t{-5});
  d.set("u", ~uint64_t{0});
  CHECK(d.integer("i") == -5);
  CHECK(d.unsigned_integer("u") == ~uint64_t{0});
  d.set("t", "text");
  CHECK(d.text("t") == "text");
  auto kind = [](auto&& f) {
    try {
      f();
    } catch (const Error& e) {
      return e.kind();
    }
    return ErrorKind::Internal;
  };
  CHECK(kind([&] { d.text("none"); }) == ErrorKind::State);
  CHECK(kind([&] { d.number("t"); }) == ErrorKind::State);
  CHECK(kind([&] { d.integer("u"); }) == ErrorKind::State);
  CHECK(kind([&] { d.tensor("none"); }) == ErrorKind::State);
  CHECK(kind([&] { assign_all({{zeros({2}), zeros({3})}}); }) == ErrorKind::Shape);
}

TEST_CASE("texts are in the order of their names, each name once") {
  Texts t{{"b", "1"}, {"a", "2"}, {"b", "3"}};
  t["c/x"] = "4";
  t["a"] = "5";
  t["c"];
  std::string all;
  for (const auto& [name, text] : t) all += name + "=" + text + ";";
  CHECK(all == "a=5;b=1;c=;c/x=4;");
  CHECK(t.size() == 4);
  CHECK(t.count("b") == 1);
  CHECK(t.count("bb") == 0);
  CHECK(t.find("bb") == t.end());
  CHECK(t.lower_bound("c/")->second == "4");
  CHECK(t.at("b") == "1");
  CHECK_THROWS_WITH_AS(t.at("z"), doctest::Contains("there is no text named \"z\""), Error);
  CHECK(Texts{} == Texts(std::vector<Texts::value_type>{}));
  CHECK_FALSE(t == Texts{});
  CHECK(Texts{}.empty());
}

TEST_CASE("an optimiser continues where another stopped") {
  Tensor a = parameter({3, 4}, 1), b = parameter({3, 4}, 1);
  optim::AdamW first({a}, {.lr = 0.1}), second({b}, {.lr = 0.5});
  train(first, a, 3);
  first.set_lr(0.03);
  assign_all({{b, a}});
  second.load_state_dict(first.state_dict());
  CHECK(second.lr() == 0.03);
  train(first, a, 3);
  train(second, b, 3);
  CHECK(a.to_vector<float>() == b.to_vector<float>());
  CHECK(b.requires_grad());

  optim::SGD other({a}, {.lr = 0.1});
  CHECK_THROWS_AS(other.load_state_dict(first.state_dict()), Error);
  Tensor c = parameter({4}, 2);
  optim::AdamW shaped({c}, {.lr = 0.1});
  CHECK_THROWS_AS(shaped.load_state_dict(first.state_dict()), Error);
  CHECK(shaped.lr() == 0.1);
}

TEST_CASE("a scaler continues where another stopped") {
  Tensor p = parameter({3}, 1);
  optim::SGD o({p}, {.lr = 0.1});
  amp::GradScaler a({.init_scale = 8, .growth_interval = 3}),
      b({.init_scale = 8, .growth_interval = 3});
  auto step = [&](amp::GradScaler& s) {
    s.scale((p * p).sum()).backward();
    s.step(o);
    s.update();
  };
  step(a), step(a);
  b.load_state_dict(a.state_dict());
  step(b);
  CHECK(b.get_scale().item() == 16);
  CHECK(a.get_scale().item() == 8);
  a.scale((p * p).sum()).backward();
  a.step(o);
  CHECK_THROWS_AS(a.state_dict(), Error);
  a.update();
}

TEST_CASE("counts that are none are refused, and nothing changes") {
  Tensor p = parameter({3}, 1), q = parameter({2}, 2);
  optim::AdamW o({p, q}, {.lr = 0.1});
  train(o, p, 2);
  const StateDict before = o.state_dict();
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const std::vector<double>& steps :
       {std::vector<double>{2, nan}, {nan, 2}, {-1, 2}, {-0.0, 2}, {0.5, 2}, {2, 1e300}}) {
    StateDict d = before;
    for (auto& [name, t] : d.tensors)
      if (name == "steps.0") t = tensor(steps, {2}, float64);
    CHECK_THROWS_AS(o.load_state_dict(d), Error);
    CHECK(o.state_dict().tensor("steps.0").to_vector<double>() ==
          before.tensor("steps.0").to_vector<double>());
  }
  // One more epoch must not overflow.
  optim::StepLR schedule(o, 1, 0.5);
  data::DataLoader loader(data::TensorDataset({ones({4})}), {.batch_size = 2, .num_workers = 0});
  for (const char* epoch : {"9223372036854775807", "-1"}) {
    StateDict d = schedule.state_dict();
    d.set("last_epoch", epoch);
    CHECK_THROWS_AS(schedule.load_state_dict(d), Error);
    d = loader.state_dict();
    d.set("epoch", epoch);
    CHECK_THROWS_AS(loader.load_state_dict(d), Error);
  }
}
