// The steps of recurrent layers on the fake CUDA machine: products by its library, cells by the
// emulator.
#include "neural/lstm_check.h"
#include "plugin/fake_setup.h"

using namespace ingot;
using namespace ingot::test;

static FakeMachine machine("lstm");

TEST_CASE("an LSTM and its gradients are those of float64, in every type") {
  const Device d("cuda");
  check_lstm(d, float32, float32, 2e-5);
  check_lstm(d, float32, bfloat16, 4e-2);
  check_lstm(d, float32, float16, 5e-3);
  check_lstm(d, float16, float16, 5e-3);
}

TEST_CASE("GRUs and plain RNNs and their gradients are those of float64, in every type") {
  const Device d("cuda");
  for (int64_t gates : {3, 1}) {
    CAPTURE(gates);
    check_lstm(d, float32, float32, 2e-5, gates);
    check_lstm(d, float32, bfloat16, 5e-2, gates, false, true);
    // A plain RNN's rounding adds up over its steps.
    check_lstm(d, float16, float16, gates == 1 ? 2e-2 : 5e-3, gates, false, true);
    CHECK(lstm_recorded(8, d, bfloat16, gates) == lstm_recorded(50, d, bfloat16, gates));
  }
  check_lstm(d, float32, float32, 2e-5, 1, true, true);
}

TEST_CASE("float64 and a second gradient take the recorded steps") {
  const LstmCase c{"second", 4, 3, 3, 6, 1, true, false, true};
  const LstmInputs in(c);
  const auto want = run_lstm(c, in, Device("cpu"), float64, float64, true);
  for (DType t : {float64, float32}) {
    const auto got = run_lstm(c, in, Device("cuda"), t, t, true);
    for (size_t i = 0; i < want.size(); ++i) CHECK(lstm_distance(got[i], want[i]) < 1e-4);
  }
}

TEST_CASE("what an LSTM records does not grow with its steps, and a training step is captured") {
  CHECK(lstm_recorded(8, Device("cuda"), bfloat16) == lstm_recorded(50, Device("cuda"), bfloat16));
  nn::LSTM layer(4, 8, {.num_layers = 2});
  layer.to(Device("cuda"));
  optim::SGD optimiser(layer.parameters(), {.lr = 0.1});
  Tensor x = randn({6, 3, 4}).to(Device("cuda"));
  std::vector<double> losses;
  const int graphs = machine.graph_launches();
  for (int i = 0; i < 6; ++i) {
    optimiser.zero_grad();
    Tensor loss;
    {
      amp::Autocast scope(bfloat16);
      loss = (layer(x).output.to(float32) - 0.5).square().mean();
    }
    loss.backward();
    optimiser.step();
    losses.push_back(loss.item());
  }
  CHECK(losses.back() < losses.front());
  CHECK(machine.graph_launches() > graphs);
}
