// Every allocation may fail. Each failure is std::bad_alloc or OutOfMemory, nothing leaks,
// and the next call gives the right numbers. INGOT_TEST_FAULTS=all tries each allocation; a sample
// of them otherwise.
#include <doctest/doctest.h>

#include <ingot/ingot.h>
#include <ingot/profile.h>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <string>

#include "allocation_hook.h"
#include "compile/executor.h"
#include "failing_backend.h"
#include "graph/recorder.h"
#include "programs.h"

using namespace ingot;
using namespace ingot::test;

namespace {

bool everything() {
  const char* e = std::getenv("INGOT_TEST_FAULTS");
  return e && std::string(e) == "all";
}

size_t live_bytes() {
  size_t n = 0;
  for (const char* name : {"cpu", "cpu:1"})
    n += Device(name).memory().in_use - Device(name).memory().arena;
  return n;
}

// A call that cannot be prepared is made in another way, which rounds otherwise.
bool close(const std::vector<double>& a, const std::vector<double>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](double x, double y) { return std::abs(x - y) <= 1e-4 * (1 + std::abs(y)); });
}

// "" when it ran, "memory" when it failed as it should, or else what it threw.
std::string attempt(const FaultProgram& p, std::vector<double>& result) {
  try {
    result = p.run();
    return "";
  } catch (const std::bad_alloc&) {
    return "memory";
  } catch (const Error& e) {
    return e.kind() == ErrorKind::OutOfMemory ? "memory" : e.what();
  } catch (const std::exception& e) {
    return std::string("std::exception: ") + e.what();
  }
}

// After a failure: nothing is pending or held, and the program runs.
void check_usable(const FaultProgram& p, const std::vector<double>& want, size_t bytes,
                  const std::string& where) {
  CHECK_MESSAGE(live_bytes() == bytes, where);
  CHECK_MESSAGE(Recorder::current().size() == 0, where);
  std::vector<double> again;
  const std::string trouble = attempt(p, again);
  CHECK_MESSAGE(trouble == "", where, trouble);
  CHECK_MESSAGE(close(again, want), where);
}

void fail_one(const FaultProgram& p, int64_t n, bool persistent, const std::vector<double>& want,
              size_t bytes) {
  const std::string where = std::string(p.name) + ", allocation " + std::to_string(n) +
                            (persistent ? " and all after it: " : ": ");
  if (std::getenv("INGOT_TEST_TRACE")) std::fprintf(stderr, "%s\n", where.c_str());
  std::vector<double> got;
  clear_plan_cache();
  fail_allocation(n, persistent);
  const std::string result = attempt(p, got);
  stop_counting();
  CHECK_MESSAGE((result == "memory" || (result.empty() && close(got, want))), where, result);
  check_usable(p, want, bytes, where);
}

}  // namespace

TEST_CASE("an allocation of the host fails") {
  set_num_threads(2);
  const char* only = std::getenv("INGOT_TEST_PROGRAM");
  for (const FaultProgram& p : fault_programs()) {
    if (only && p.name != std::string(only)) continue;
    const std::vector<double> want = p.run();
    REQUIRE(p.run() == want);
    const size_t bytes = live_bytes();
    clear_plan_cache();
    count_allocations();
    p.run();
    const int64_t count = stop_counting();
    const int64_t every = everything() ? 1 : std::max<int64_t>(1, count / 12);
    for (int64_t n = 0; n < count; n += every)
      for (bool persistent : {false, true})
        if (everything() || persistent == (n / every % 2 == 1))
          fail_one(p, n, persistent, want, bytes);
  }
}

TEST_CASE("an allocation of the device fails") {
  FailingBackend& faults = FailingBackend::install();
  set_num_threads(2);
  for (const FaultProgram& p : fault_programs()) {
    empty_cache(Device("cpu"));
    const std::vector<double> want = p.run();
    const size_t bytes = live_bytes();
    empty_cache(Device("cpu"));
    const int64_t before = faults.allocations;
    p.run();
    const int64_t count = faults.allocations - before;
    for (int64_t n = 0; n < count; n += everything() ? 1 : std::max<int64_t>(1, count / 6)) {
      const std::string where = std::string(p.name) + ", allocation " + std::to_string(n) + ": ";
      empty_cache(Device("cpu"));
      faults.allocations_left = n;
      std::vector<double> got;
      const std::string result = attempt(p, got);
      faults.allocations_left = -1;
      CHECK_MESSAGE((result == "memory" || (result.empty() && close(got, want))), where, result);
      check_usable(p, want, bytes, where);
    }
  }
}
