// The budget of recording: one elementwise op, recorded, keyed, found in the plan cache and freed.
// The null device executes nothing, so what is timed is what Ingot itself costs.
#include <doctest/doctest.h>
#include <sys/resource.h>

#include <algorithm>

#include <ingot/ingot.h>

namespace {

double cpu_seconds() {
  rusage usage{};
  getrusage(RUSAGE_THREAD, &usage);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

}  // namespace

TEST_CASE("recording, keying and freeing an elementwise op takes less than 250 ns") {
  using ingot::Tensor;
  constexpr int kOps = 1000, kChains = 100;
  Tensor a = ingot::ones({10}, "null"), b = ingot::ones({10}, "null");
  ingot::eval({a, b});
  const auto chain = [&] {
    Tensor x = a;
    for (int i = 0; i < kOps; ++i) x = x + b;
    ingot::eval(x);
  };
  chain();
  double best = 1;
  for (int sample = 0; sample < 10; ++sample) {
    const double start = cpu_seconds();
    for (int i = 0; i < kChains; ++i) chain();
    best = std::min(best, (cpu_seconds() - start) / (kOps * kChains));
  }
  MESSAGE("record + key + run on the null device + free: " << best * 1e9 << " ns an op");
  CHECK(best < 250e-9);
}
