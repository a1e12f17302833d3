// Modules: handles and clones, dictionaries, placement, printing, other signatures, what errors
// say.
#include <algorithm>
#include <chrono>
#include <iostream>
#include <sstream>

#include "support/nn_check.h"

// The public names live beside the standard library's.
using namespace std;
using namespace ingot;
using namespace ingot::check;

namespace {

struct Block : nn::Module {
  nn::Linear fc = add("fc", nn::Linear(4, 4));
  nn::Parameter scale = register_parameter("scale", ones({4}));
  Tensor forward(Tensor x) override { return relu(fc(x)) * scale; }
};

struct Net : nn::Module {
  Block first = add("first", Block());
  nn::Sequential body = add("body", nn::Sequential(nn::Linear(4, 6), nn::Tanh(), nn::Linear(6, 4)));
  nn::ModuleList<Block> blocks = add("blocks", nn::ModuleList<Block>{Block(), Block()});
  nn::Parameter count = register_buffer("count", zeros({1}, int64));
  nn::Parameter scratch = register_buffer("scratch", zeros({1}), false);
  Tensor forward(Tensor x) override {
    x = body(first(x));
    for (Block& b : blocks) x = b(x);
    return x;
  }
};

}  // namespace

TEST_CASE("naming the parameters of many parts takes time in their number") {
  auto seconds = [](int64_t count) {
    double best = 1e9;
    for (int round = 0; round < 3; ++round) {
      const auto begin = std::chrono::steady_clock::now();
      nn::ModuleList<nn::LayerNorm> list;
      for (int64_t i = 0; i < count; ++i) list.push_back(nn::LayerNorm({1}));
      best = std::min(
          best, std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
      CHECK(list.parameters().back().name() == std::to_string(count - 1) + ".bias");
    }
    return best;
  };
  CHECK(seconds(2000) < 9 * seconds(500));  // in the square of them it would be 16
}

TEST_CASE("a tensor that is there under two names keeps the first") {
  struct Tied : nn::Module {
    nn::Linear first = add("first", nn::Linear(2, 2));
    nn::Linear second = add("second", nn::Linear(2, 2));
    nn::Parameter more = register_parameter("more", first.weight());
  };
  const Tied t;
  CHECK(t.first.weight().name() == t.named_parameters()[0].first);
  nn::Sequential body(nn::Linear(2, 2), nn::ReLU());
  struct Outer : nn::Module {
    explicit Outer(const nn::Sequential& s) { add("a", s), add("b", s); }
  };
  const Outer outer(body);
  CHECK(outer.parameters()[0].name() == "a.0.weight");
}

TEST_CASE("clone() copies layers, parameters, buffers and modes; a copy shares them") {
  manual_seed(1);
  Net net;
  net.blocks[1].eval();
  net.body[0].requires_grad_(false);
  Net twin = net.clone();
  Tensor x = randn({3, 4});
  const Tensor before = twin(x).detach().eval_();
  CHECK(difference(net(x), before) == 0);
  CHECK(names(twin.named_parameters()) == names(net.named_parameters()));
  CHECK(twin.blocks[0].fc.weight().name() == "blocks.0.fc.weight");
  CHECK_FALSE(twin.blocks[1].is_training());
  CHECK(twin.blocks[0].is_training());
  CHECK_FALSE(twin.body[0].parameters()[0].requires_grad());
  CHECK(twin.first.fc.weight().requires_grad());
  CHECK(twin.first.scale.cell() == twin.parameter("first.scale").cell());
  CHECK(twin.first.scale.cell() != net.first.scale.cell());
  {
    NoGrad guard;
    for (Tensor p : net.parameters()) p.zero_();
    net.parameter("count").fill_(3);
  }
  CHECK(largest(net(x)) == 0);
  CHECK(difference(twin(x), before) == 0);
  CHECK(twin.count.item() == 0);
  // Trained alone, the twin changes and the original does not.
  optim::SGD o(twin.first.parameters(), {.lr = 0.1});
  twin(x).sum().backward();
  o.step();
  CHECK(difference(twin(x), before) > 0);
  CHECK(largest(net(x)) == 0);

  Net same = twin;
  CHECK(same.first.fc.weight().cell() == twin.first.fc.weight().cell());
  auto third = clone(same);
  CHECK(third.first.fc.weight().cell() != twin.first.fc.weight().cell());
}

TEST_CASE("clone() keeps ties, and refuses a registered tensor held as a Tensor") {
  struct Tied : nn::Module {
    nn::Embedding table = add("table", nn::Embedding(7, 5));
    nn::Linear head = add("head", nn::Linear(5, 7, {.bias = false}));
    Tied() { set_parameter("head.weight", table.weight()); }
    Tensor forward(Tensor i) override { return head(table(i)); }
  };
  Tied net;
  Tied twin = net.clone();
  CHECK(twin.head.weight().cell() == twin.table.weight().cell());
  CHECK(twin.head.weight().cell() != net.head.weight().cell());

  struct Plain : nn::Module {
    Tensor scale = register_parameter("scale", ones({2}));
  };
  Plain plain;
  CHECK(contains(message([&] { Plain copy = plain.clone(); }, ErrorKind::State), "nn::Parameter"));
  CHECK(contains(message([&] { Plain copy = net.clone(); }, ErrorKind::State), "another class"));
}

TEST_CASE("state_dict: PyTorch's names and order; load_state_dict says what does not fit") {
  manual_seed(2);
  Net net, other;
  const StateDict state = net.state_dict();
  CHECK(names(state.tensors) ==
        "count first.scale first.fc.weight first.fc.bias body.0.weight body.0.bias body.2.weight "
        "body.2.bias "
        "blocks.0.scale blocks.0.fc.weight blocks.0.fc.bias blocks.1.scale blocks.1.fc.weight "
        "blocks.1.fc.bias");
  Tensor x = randn({3, 4});
  CHECK(difference(net(x), other(x)) > 0);
  const Tensor handle = other.first.fc.weight();
  CHECK(other.load_state_dict(state).complete());
  CHECK(difference(net(x), other(x)) == 0);
  CHECK(difference(handle, net.first.fc.weight()) == 0);
  CHECK(handle.requires_grad());
  CHECK(handle.name() == "first.fc.weight");
  {  // a copy, not a tie
    NoGrad guard;
    Tensor(handle).zero_();
  }
  CHECK(largest(net.first.fc.weight()) > 0);

  StateDict wrong = state;
  wrong.tensors[1].second = ones({5});
  wrong.tensors[2].first = "first.fc.w";
  const string text = message([&] { other.load_state_dict(wrong); }, ErrorKind::Value);
  CHECK(contains(text, "missing: first.fc.weight"));
  CHECK(contains(text, "unexpected: first.fc.w"));
  CHECK(contains(text, "wrong shape: first.scale: float32[4]"));
  CHECK(largest(handle) == 0);  // nothing was loaded
  const nn::LoadReport report = other.load_state_dict(wrong, false);
  CHECK(report.missing == vector<string>{"first.fc.weight"});
  CHECK(report.unexpected == vector<string>{"first.fc.w"});
  CHECK(report.misshapen.size() == 1);

  // Types and devices are the module's.
  Net moved;
  moved.to(float64).to("cpu:1");
  moved.load_state_dict(state);
  CHECK(moved.first.fc.weight().dtype() == float64);
  CHECK(moved.first.fc.weight().device() == Device("cpu:1"));
}

TEST_CASE("a module of another signature is called like any other") {
  struct Mix : nn::ModuleOf<pair<Tensor, int>(Tensor, Tensor, int)> {
    nn::Linear fc = add("fc", nn::Linear(4, 4));
    pair<Tensor, int> forward(Tensor a, Tensor b, int n) override { return {fc(a) + b, n + 1}; }
  };
  struct Outer : nn::Module {
    Mix mix = add("mix", Mix());
    Tensor forward(Tensor x) override { return mix(x, x, 2).first; }
  };
  Outer outer;
  CHECK(outer(ones({2, 4})).shape() == Dims{2, 4});
  Mix mix;
  auto [y, n] = mix(ones({2, 4}), ones({4}), 4);
  CHECK(n == 5);
  CHECK(y.shape() == Dims{2, 4});
  CHECK(names(outer.named_parameters()) == "mix.fc.weight mix.fc.bias");
  CHECK(contains(message(
                     [&] {
                       mix(ones({2, 3}), ones({4}), 4);
                     },
                     ErrorKind::Shape),
                 "in layer fc (Linear) of Mix"));
  Mix twin = mix.clone();
  CHECK(twin.fc.weight().cell() != mix.fc.weight().cell());
}

TEST_CASE("errors name the layer by its path") {
  Net net;
  string text = message([&] { net(ones({2, 5})); }, ErrorKind::Shape);
  CHECK(contains(text, "in layer first.fc (Linear) of Net"));
  struct Wrong : nn::Module {
    nn::ModuleList<Block> blocks = add("blocks", nn::ModuleList<Block>{Block(), Block()});
    Tensor forward(Tensor x) override { return blocks[1](x.reshape({5, -1})); }
  };
  struct Outer : nn::Module {
    Wrong inner = add("inner", Wrong());
    Tensor forward(Tensor x) override { return inner(x); }
  };
  Outer outer;
  text = message([&] { outer(ones({2, 4})); }, ErrorKind::Shape);
  CHECK(contains(text, "in layer inner (Wrong) of Outer"));
  text = message([&] { outer(ones({5, 5})); }, ErrorKind::Shape);
  CHECK(contains(text, "in layer inner.blocks.1.fc (Linear) of Outer"));
  // Outside forward() there is no layer.
  text = message([&] { matmul(ones({2, 3}), ones({2, 3})); }, ErrorKind::Shape);
  CHECK(text.find("in layer") == string::npos);
}

TEST_CASE("a layer that was built but never added is reported") {
  struct Forgot : nn::Module {
    nn::Linear fc = nn::Linear(4, 4);
    Tensor forward(Tensor x) override { return fc(x); }
  };
  Forgot net;
  const string text = message([&] { net(ones({2, 4})); }, ErrorKind::State);
  CHECK(contains(text, "never added"));
  CHECK(contains(text, "Forgot::forward()"));
  CHECK(contains(text, "add(\"name\", Linear(...))"));
  // Layers without parameters, frozen ones, and calls outside a module are fine.
  struct Fine : nn::Module {
    nn::ReLU act;
    nn::Linear teacher = nn::Linear(4, 4);
    Fine() { teacher.requires_grad_(false); }
    Tensor forward(Tensor x) override { return act(teacher(x)); }
  };
  Fine fine;
  CHECK(fine(ones({2, 4})).shape() == Dims{2, 4});
  CHECK(nn::Linear(4, 2)(ones({4})).shape() == Dims{2});
}

TEST_CASE("place(): parts on another device, copies at the boundaries, counted by explain") {
  manual_seed(3);
  Net net;
  Tensor x = randn({3, 4});
  x.eval_();
  Tensor want = net(x).detach().eval_();
  CHECK(explain(net(x)).copies == 0);
  net.place("body.*", "cpu:1");
  CHECK(net.parameter("body.0.weight").device() == Device("cpu:1"));
  CHECK(net.first.fc.weight().device() == Device("cpu"));
  Tensor y = net(x);
  CHECK(y.device() == Device("cpu"));
  CHECK(explain(y).copies == 2);  // into the body and out of it
  CHECK(contains(explain(y).text, "cpu:1"));
  CHECK(difference(y, want) == 0);
  // Training crosses the boundary too.
  optim::SGD o(net.parameters(), {.lr = 0.1});
  for (int i = 0; i < 2; ++i) {
    net(x).sum().backward();
    CHECK(net.parameter("body.0.weight").grad().device() == Device("cpu:1"));
    o.step();
  }
  CHECK(difference(net(x), want) > 0);
  // The last layer elsewhere: the result still comes back.
  net.place("blocks.1", "cpu:1");
  CHECK(net.blocks[1].scale.device() == Device("cpu:1"));
  CHECK(net.blocks[1].fc.weight().device() == Device("cpu"));
  net.place("blocks.1.*", "cpu:1");
  CHECK(net.blocks[1].fc.weight().device() == Device("cpu:1"));
  CHECK(net(x).device() == Device("cpu"));
  CHECK(explain(net(x)).copies == 4);
  CHECK(contains(message([&] { net.place("tail.*", "cpu:1"); }, ErrorKind::Value), "blocks.1.fc"));
  net.to("cpu");
  CHECK(explain(net(x)).copies == 0);
}

TEST_CASE("apply, named_modules, freezing, printing") {
  Net net;
  int linears = 0;
  net.apply([&](nn::Module& m) {
    if (auto* layer = dynamic_cast<nn::Linear*>(&m)) {
      nn::init::constant_(layer->weight(), 0.5);
      ++linears;
    }
  });
  CHECK(linears == 5);
  CHECK(net.first.fc.weight().detach().mean().item() == 0.5);
  string paths;
  for (const auto& [path, m] : net.named_modules()) paths += path + " ";
  CHECK(paths ==
        " first first.fc body body.0 body.1 body.2 blocks blocks.0 blocks.0.fc blocks.1 "
        "blocks.1.fc ");
  net.body.requires_grad_(false);
  ostringstream out;
  out << net;
  const string text = out.str();
  CHECK(contains(text, "Net"));
  CHECK(contains(text, "(first): Block"));
  CHECK(contains(
      text,
      "(fc): Linear(in_features=4, out_features=4, bias=True)  weight [4, 4], bias [4]  = 20"));
  CHECK(contains(text, "weight [6, 4] frozen"));
  CHECK(contains(text, "scale [4]"));
  CHECK(contains(text, "count [1] buffer"));
  CHECK(contains(text, "parameters: 130, trained: 72, bytes: 520"));
  // Frozen parameters may be given to an optimiser: they stay.
  optim::SGD o(net.parameters(), {.lr = 1});
  const Tensor frozen = net.parameter("body.0.weight").detach().clone().eval_();
  net(ones({1, 4})).sum().backward();
  CHECK_FALSE(net.parameter("body.0.weight").grad().defined());
  o.step();
  CHECK(difference(net.parameter("body.0.weight"), frozen) == 0);
}

TEST_CASE("lists and dictionaries of modules and parameters") {
  struct Many : nn::Module {
    nn::ModuleDict<nn::Linear> heads =
        add("heads", nn::ModuleDict<nn::Linear>{{"a", nn::Linear(4, 2)}, {"b", nn::Linear(4, 3)}});
    nn::ParameterList scales = add("scales", nn::ParameterList({ones({2}), ones({3})}));
    Tensor forward(Tensor x) override { return heads["b"](x) * scales[1]; }
  };
  Many many;
  CHECK(names(many.named_parameters()) ==
        "heads.a.weight heads.a.bias heads.b.weight heads.b.bias scales.0 scales.1");
  CHECK(many(ones({2, 4})).shape() == Dims{2, 3});
  CHECK(many.heads.contains("a"));
  CHECK_FALSE(many.heads.contains("c"));
  CHECK(contains(message([&] { many.heads["c"]; }, ErrorKind::Value), "\"c\""));
  CHECK(contains(message([&] { many.scales[2]; }, ErrorKind::Index), "only 2"));
  Many twin = many.clone();
  CHECK(twin.heads["b"].weight().cell() != many.heads["b"].weight().cell());
  CHECK(twin.heads["b"].weight().cell() == twin.parameter("heads.b.weight").cell());
  CHECK(twin.scales[1].cell() == twin.parameter("scales.1").cell());
  nn::Sequential net;
  net.push_back(nn::Linear(4, 3)).push_back(nn::ReLU());
  CHECK(net.size() == 2);
  CHECK(net(ones({2, 4})).shape() == Dims{2, 3});
  CHECK(contains(message([&] { net[2]; }, ErrorKind::Index), "only 2"));
}
