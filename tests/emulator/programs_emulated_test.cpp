// Random programs on the emulated GPU: what the compiler really makes of programs (views,
// reductions, gradients) goes through the CUDA emitter. INGOT_RANDOM_PROGRAMS=N tries N of them,
// INGOT_RANDOM_SEED=S only one.
#include <cstdlib>

#include <doctest/doctest.h>

#include "support/random_program.h"

using namespace ingot;
using namespace ingot::check;

namespace {

int64_t from_env(const char* name, int64_t otherwise) {
  const char* v = std::getenv(name);
  return v != nullptr ? std::atoll(v) : otherwise;
}

std::string wrong_with(uint64_t seed, std::string& text) {
  ProgramOptions o;
  o.seed = seed;
  o.data_seed = 1;
  o.device = Device("cuda");
  o.run = false;
  try {
    ProgramResult want = run_program(o);
    text = want.text;
    o.run = true;
    ProgramResult got = run_program(o);
    Tolerance tolerance =
        want.dtype == DType::Float32 ? Tolerance{2e-3, 2e-3} : Tolerance{1e-7, 1e-8};
    for (size_t i = 0; i < want.values.size(); ++i) {
      std::string wrong = difference(got.values[i], want.values[i], tolerance);
      if (!wrong.empty()) return want.names[i] + " " + wrong;
    }
  } catch (const std::exception& e) {
    return std::string("threw ") + e.what();
  }
  return "";
}

}  // namespace

TEST_CASE("random programs on the emulated GPU agree with the oracle") {
  int64_t only = from_env("INGOT_RANDOM_SEED", -1), count = from_env("INGOT_RANDOM_PROGRAMS", 120);
  int64_t first = only >= 0 ? only : 5000, last = only >= 0 ? only : first + count - 1;
  for (int64_t seed = first; seed <= last; ++seed) {
    std::string text, wrong = wrong_with(static_cast<uint64_t>(seed), text);
    CHECK_MESSAGE(wrong.empty(), "INGOT_RANDOM_SEED=", seed, ": ", wrong, "\n", text);
  }
}
