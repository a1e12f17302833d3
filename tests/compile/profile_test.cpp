// Profile: what is launched is timed, and nothing else changes. INGOT_TEST_DEVICE names another
// device.
#include <doctest/doctest.h>

#include <cstdlib>
#include <memory>
#include <optional>

#include <ingot/ingot.h>
#include <ingot/models.h>
#include <ingot/profile.h>

using namespace ingot;

static Device device() {
  const char* name = std::getenv("INGOT_TEST_DEVICE");
  return name ? Device(name) : Device("cpu");
}

static std::vector<float> train(int steps) {
  manual_seed(3);
  models::MLP model(16, 4, {.hidden = {32}});
  model.to(device());
  optim::AdamW opt(model.parameters(), {.lr = 1e-2});
  std::vector<float> losses;
  for (int i = 0; i < steps; ++i) {
    const Tensor loss = cross_entropy(model(randn({8, 16}, device())), randint(4, {8}, device()));
    opt.zero_grad();
    loss.backward();
    opt.step();
    losses.push_back(loss.item<float>());
  }
  return losses;
}

TEST_CASE("launches are those of the plan, in order, with their bytes and flops") {
  const Tensor a = randn({64, 32}, device()), b = randn({32, 48}, device());
  eval({a, b});
  const Tensor y = softmax(matmul(a, b) * 2.0f, -1).sum();
  const Explanation e = explain(y);
  Profile profile;
  eval(y);
  const double end = profile.now_us();
  const std::vector<LaunchTime> launches = profile.launches();
  REQUIRE(launches.size() == e.kernels.size());
  double bytes = 0, flops = 0, last = 0;
  for (size_t i = 0; i < launches.size(); ++i) {
    const LaunchTime& l = launches[i];
    CHECK(l.ops == e.kernels[i]);
    CHECK(l.device == device());
    CHECK(l.us > 0);
    CHECK(l.start_us >= last);
    CHECK(l.memory_us > 0);
    last = l.start_us;
    bytes += l.bytes, flops += l.flops;
    if (l.kind == "library") CHECK(l.flops >= 2.0 * 64 * 32 * 48);
  }
  CHECK(last < end);
  CHECK(bytes == doctest::Approx(e.bytes_read + e.bytes_written));
  CHECK(flops == doctest::Approx(e.flops));
}

TEST_CASE("copies between devices are among them") {
  const Tensor a = ones({256}, device());
  eval(a);
  const Tensor there = (a + 1).to(device() == Device("cpu") ? "cpu:1" : "cpu");
  const Profile profile;
  eval(there);
  int copies = 0;
  for (const LaunchTime& l : profile.launches()) copies += l.kind == "copy";
  CHECK(copies == 1);
}

TEST_CASE("a profile changes no result, and what ran before and after it is not in it") {
  const std::vector<float> plain = train(5);
  size_t count = 0;
  {
    const Profile profile;
    CHECK(profile.launches().empty());
    CHECK(train(5) == plain);
    count = profile.launches().size();
    CHECK(count > 20);
  }
  CHECK(train(5) == plain);
  const Profile again;
  CHECK(again.launches().empty());
}

TEST_CASE("one at a time") {
  auto first = std::make_unique<Profile>();
  try {
    const Profile second;
    FAIL("a second one was made");
  } catch (const Error& e) {
    CHECK(e.kind() == ErrorKind::State);
    CHECK(std::string(e.what()).find("another Profile") != std::string::npos);
  }
  first.reset();
  CHECK_NOTHROW(Profile());
}

TEST_CASE("a dry run takes the memory of a run and computes nothing") {
  const Device d = device() == Device("cpu") ? Device("cpu:3") : device();
  auto peak = [&](bool dry) {
    manual_seed(3);
    models::MLP model(64, 4, {.hidden = {256}});
    model.to(d);
    optim::AdamW opt(model.parameters(), {.lr = 1e-2});
    const Tensor x = randn({512, 64}, d), target = randint(4, {512}, d);
    eval({x, target});
    const auto first = model.parameters()[0].to_vector<float>();
    d.reset_peak_memory();
    {
      std::optional<DryRun> only_planned;
      if (dry) only_planned.emplace();
      for (int i = 0; i < 3; ++i) {
        cross_entropy(model(x), target).backward();
        opt.step();
      }
    }
    CHECK((model.parameters()[0].to_vector<float>() == first) == dry);
    return d.memory().peak;
  };
  const size_t planned = peak(true);
  CHECK(planned == peak(false));
  CHECK(planned > size_t{512} * 256 * 4);
}

TEST_CASE("a dry run reports what fills the arena at its peak") {
  const Device d = device() == Device("cpu") ? Device("cpu:3") : device();
  manual_seed(3);
  models::MLP model(64, 4, {.hidden = {256, 128}});
  model.to(d);
  optim::AdamW opt(model.parameters(), {.lr = 1e-2});
  const Tensor x = randn({512, 64}, d), target = randint(4, {512}, d);
  eval({x, target});
  const DryRun only_planned;
  CHECK(only_planned.largest(d).bytes == 0);
  for (int i = 0; i < 2; ++i) {
    cross_entropy(model(x), target).backward();
    opt.step();
  }
  const ArenaUse use = only_planned.largest(d);
  CHECK(use.bytes == static_cast<double>(d.memory().arena));
  CHECK(use.weights + use.activations + use.gradients + use.workspace == use.bytes);
  CHECK(use.workspace >= 0);
  // Both hidden layers' results are there when the way back begins, of the types the device
  // computes in.
  double sum = 0, hidden = 0;
  for (const auto& [layer, bytes] : use.layers) {
    sum += bytes;
    if (layer == "0" || layer == "2") hidden += bytes;
  }
  CHECK(sum == use.activations);
  CHECK(hidden >= 4.0 * 512 * 256);
  CHECK(use.activations <= 4.0 * 512 * (64 + 256 + 128 + 4) * 2);
  CHECK(use.gradients > 0);
  {
    // The backward pass of one layer: nothing but its products. A nested one continues with the
    // same account.
    const DryRun nested;
    NoGrad no_grad;
    model(x).eval_();
    CHECK(nested.largest(d).bytes == use.bytes);
  }
  CHECK(only_planned.largest(Device("null:3")).bytes == 0);
}

TEST_CASE("empty_cache gives the arena back, and the next run takes its own") {
  const Device d = device() == Device("cpu") ? Device("cpu:3") : device();
  auto run = [&](int64_t n) {
    const Tensor a = randn({n, n}, d);
    eval(a);
    eval(matmul(softmax(matmul(a, a), -1), a).sum());
  };
  run(256);
  const size_t large = d.memory().arena;
  CHECK(large >= 256 * 256 * 4);
  run(32);
  CHECK(d.memory().arena == large);
  empty_cache(d);
  CHECK(d.memory().arena == 0);
  empty_cache(d);
  run(128);
  CHECK(d.memory().arena > 0);
  CHECK(d.memory().arena < large);
}
