// A ResNet in float32, in bfloat16 and in float16 with loss scaling reaches the same loss; an
// infinite loss skips its step and halves the scale.
#include <limits>

#include "ingot/models.h"
#include "support/nn_check.h"

using namespace ingot;
using namespace ingot::check;

namespace {

struct Run {
  double first = 0, last = 0;
  int64_t counted = 0;  // steps the optimiser took
};

// 30 steps on images of 4 classes; step `bad` has an infinite loss (float16 only).
Run train(std::optional<DType> type, int bad = -1) {
  manual_seed(11);
  models::ResNet net({1, 1, 1, 1}, false,
                     {.num_classes = 4, .in_channels = 1, .small_input = true});
  optim::AdamW o(net.parameters(), {.lr = 5e-4});
  amp::GradScaler scaler({.init_scale = 1024, .enabled = type == float16});
  Tensor patterns = randn({4, 1, 16, 16});
  Run r;
  for (int step = 0; step < 30; ++step) {
    Tensor target = randint(0, 4, {16}),
           x = patterns.index_select(0, target) + randn({16, 1, 16, 16}) * 0.7;
    Tensor loss;
    {
      amp::Autocast scope(type.value_or(bfloat16), type.has_value());
      loss = cross_entropy(net(x), target);
    }
    std::vector<float> before;
    const double scale = scaler.get_scale().item();
    if (step == bad) before = net.parameter("fc.weight").to_vector<float>();
    scaler.scale(step == bad ? loss * std::numeric_limits<double>::infinity() : loss).backward();
    scaler.step(o);
    scaler.update();
    if (step == bad) {
      CHECK(net.parameter("fc.weight").to_vector<float>() == before);
      CHECK(scaler.get_scale().item() == scale / 2);
    }
    if (step == 0) r.first = loss.item();
    if (step >= 25) r.last += loss.item() / 5;
  }
  r.counted = o.state().back().item<int64_t>();
  return r;
}

}  // namespace

TEST_CASE("a ResNet learns the same in 16 bits") {
  const Run whole = train({}), brain = train(bfloat16), half = train(float16, 7);
  MESSAGE("losses from " << whole.first << ": float32 " << whole.last << ", bfloat16 " << brain.last
                         << ", float16 " << half.last);
  CHECK(whole.last < 0.3 * whole.first);
  CHECK(std::abs(brain.last - whole.last) < 0.1 * whole.first);
  CHECK(std::abs(half.last - whole.last) < 0.1 * whole.first);
  CHECK(whole.counted == 30);
  CHECK(half.counted == 29);
}
