// Shared by the semantics tests: values, counters and switches.
#pragma once
#include <doctest/doctest.h>
#include <ingot/ingot.h>

#include <cmath>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "backend/null/null_backend.h"
#include "compile/executor.h"
#include "graph/cell.h"
#include "runtime/storage.h"

namespace semantics {

using namespace ingot;
using V = std::vector<double>;

/// A computed float32 tensor, on the device that the tests run on (INGOT_TEST_DEVICE) unless given
/// otherwise.
inline Tensor here(const V& values, const Device& d = default_device()) {
  Tensor t = tensor(values).to(float32).to(d);
  eval(t);
  return t;
}
/// A computed leaf that requires gradients.
inline Tensor parameter(const V& values, const Device& d = default_device()) {
  Tensor t = here(values, d);
  t.requires_grad_();
  return t;
}
inline V numbers(const Tensor& t) { return t.to_vector<double>(); }
inline bool is_computed(const Tensor& t) { return t.cell()->current()->computed; }
inline bool close(const V& a, const V& b, double tolerance = 1e-5) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i)
    if (std::abs(a[i] - b[i]) > tolerance * (1 + std::abs(b[i]))) return false;
  return true;
}

/// What fn throws: the kind of ingot::Error, or nothing.
template <class F>
std::optional<ErrorKind> kind_of(F&& fn) {
  try {
    fn();
  } catch (const Error& e) {
    return e.kind();
  }
  return {};
}

/// The same, with errors that a GPU raises when it is waited for; the CPU raises them in the run.
template <class F>
std::optional<ErrorKind> kind_after(F&& fn) {
  return kind_of([&] {
    fn();
    synchronize();
  });
}
/// Does a failed run mark every value that it did not compute? Elsewhere such values are whatever
/// is there.
inline bool fails_at_once() { return default_device().is_cpu(); }

/// Runs since it was made, or since the last take().
struct Runs {
  int64_t start = plan_stats().runs;
  int64_t count() const { return plan_stats().runs - start; }
  int64_t take() {
    int64_t n = count();
    start += n;
    return n;
  }
};
/// Plans compiled since it was made.
struct Plans {
  int64_t start = plan_stats().compiled;
  int64_t count() const { return plan_stats().compiled - start; }
};
/// Launches on the null device.
struct NullLaunches {
  int64_t start = null_counts().launches;
  int64_t take() {
    int64_t n = null_counts().launches - start;
    start += n;
    return n;
  }
};

struct Switch {
  void (*set)(bool);
  bool back;
  Switch(void (*set_)(bool), bool on, bool back_) : set(set_), back(back_) { set(on); }
  ~Switch() { set(back); }
};

/// Gives back the memory that a device keeps for the next run.
inline void release_memory(const Device& d) { release_arena(d); }

}  // namespace semantics
