// Exceptions in kernels: they reach the caller, nobody is inside the kernel by then, and the pool
// and the values are good afterwards.
#include <doctest/doctest.h>

#include <ingot/ingot.h>
#include <atomic>
#include <mutex>
#include <new>
#include <set>
#include <stdexcept>
#include <thread>
#include <vector>

#include "backend/cpu/kernel/kernel.h"
#include "backend/cpu/support/threads.h"
#include "failing_backend.h"
#include "graph/node.h"

using namespace ingot;

namespace {

// In how many pieces 64 items come, one item each: 1 when the thread takes itself for one inside a
// job.
int pieces() {
  std::atomic<int> n{0};
  cpu::parallel_for(64, 1, [&](int64_t, int64_t) { ++n; });
  return n;
}

}  // namespace

TEST_CASE("an exception in a piece reaches the caller when all threads have left") {
  set_num_threads(4);
  for (int64_t bad = 0; bad < 64; ++bad) {
    std::atomic<int> inside{0};
    bool caught = false;
    try {
      cpu::parallel_for(64, 1, [&](int64_t b, int64_t) {
        ++inside;
        if (b != bad) std::this_thread::yield();
        --inside;
        if (b == bad) throw std::runtime_error("piece " + std::to_string(b));
      });
    } catch (const std::runtime_error& e) {
      caught = e.what() == "piece " + std::to_string(bad);
      CHECK(inside == 0);
    }
    CHECK(caught);
    CHECK(pieces() == 64);
  }
}

TEST_CASE("all pieces throw: the first exception wins, the rest of the work is left out") {
  set_num_threads(4);
  std::atomic<int> calls{0};
  CHECK_THROWS_AS(cpu::parallel_for(1000, 1,
                                    [&](int64_t, int64_t) {
                                      ++calls;
                                      throw std::bad_alloc();
                                    }),
                  std::bad_alloc);
  CHECK(calls <= 4);
  CHECK(pieces() == 64);
}

TEST_CASE("a job inside a job throws through both") {
  set_num_threads(3);
  for (int i = 0; i < 20; ++i)
    CHECK_THROWS_AS(cpu::parallel_for(8, 1,
                                      [&](int64_t, int64_t) {
                                        cpu::parallel_for(8, 1, [&](int64_t, int64_t) {
                                          throw std::length_error("x");
                                        });
                                      }),
                    std::length_error);
  CHECK(pieces() == 64);
}

TEST_CASE("several callers at once, one of which throws") {
  set_num_threads(2);
  std::atomic<int> good{0}, thrown{0};
  std::vector<std::thread> callers;
  for (int t = 0; t < 3; ++t)
    callers.emplace_back([&, t] {
      for (int i = 0; i < 200; ++i) try {
          cpu::parallel_for(16, 1, [&](int64_t b, int64_t) {
            if (t == 0 && b == 7) throw std::bad_alloc();
          });
          ++good;
        } catch (const std::bad_alloc&) {
          ++thrown;
        }
    });
  for (std::thread& c : callers) c.join();
  CHECK(good == 400);
  CHECK(thrown == 200);
}

TEST_CASE("threads that cannot be started: the others compute") {
  cpu::refuse_workers_from(2);
  set_num_threads(4);
  CHECK(pieces() == 64);
  CHECK(cpu::pool_workers() == 1);
  CHECK((ones({300, 300}) * 2).sum().item<float>() == 180000);
  cpu::refuse_workers_from(1);
  set_num_threads(4);
  CHECK(pieces() == 64);
  CHECK(cpu::pool_workers() == 0);
  cpu::refuse_workers_from(0);
  set_num_threads(4);
  CHECK(pieces() == 64);
  CHECK(cpu::pool_workers() == 3);
}

namespace {

struct Exhausted final : cpu::CpuExecutable {
  void run(void* const*, void*, const RunArgs&) override {
    cpu::parallel_for(16, 1, [](int64_t, int64_t) { throw std::bad_alloc(); });
  }
};

}  // namespace

TEST_CASE("a kernel without memory is OutOfMemory, with a sentence") {
  set_num_threads(2);
  Exhausted kernel;
  RunStatus status;
  RunArgs args;
  args.status = &status;
  Backend& cpu = *backend_for(DeviceType::CPU);
  try {
    cpu.launch(0, kernel, nullptr, nullptr, args);
    FAIL("nothing was thrown");
  } catch (const OutOfMemory& e) {
    CHECK(e.kind() == ErrorKind::OutOfMemory);
    CHECK(std::string(e.what()).find("no memory for the threads' scratch space") !=
          std::string::npos);
  }
}

TEST_CASE("a run that fails at any launch: parameters are old, new, or name the error") {
  test::FailingBackend& faults = test::FailingBackend::install();
  set_num_threads(2);
  auto data = rand({64, 32});
  run_pending();
  int old = 0, lost = 0;
  for (int64_t at = 0;; ++at) {
    manual_seed(1);
    Tensor w = rand({32, 16});
    manual_seed(1);
    Tensor before = rand({32, 16});
    w.requires_grad_();
    const Tensor want = before - 0.5 * 2 * data.transpose(0, 1).matmul(data.matmul(before));
    run_pending();
    Tensor loss = data.matmul(w).square().sum();
    loss.backward();
    {
      NoGrad guard;
      w -= 0.5 * w.grad();
    }
    faults.launches_left = at;
    const int64_t begun = faults.launches;
    bool failed = false;
    try {
      run_pending();
    } catch (const OutOfMemory&) {
      failed = true;
    }
    faults.launches_left = -1;
    if (!failed) {
      CHECK(faults.launches - begun == at);
      CHECK(allclose(w, want, 1e-4, 1e-4));
      break;
    }
    // What was pending can be asked for again; what has lost its operands says so.
    try {
      const bool same = allclose(w, want, 1e-4, 1e-4);
      CHECK(same);
      ++old;
    } catch (const Error& e) {
      CHECK(e.kind() == ErrorKind::State);
      CHECK(std::string(e.what()).find("no memory in this test") != std::string::npos);
      ++lost;
    }
    CHECK(data.sum().item<float>() > 0);
    CHECK(before.sum().item<float>() > 0);
  }
  CHECK(old > 0);
  CHECK(lost > 0);
}

TEST_CASE("a captured call that fails says whether it had begun to update") {
  test::FailingBackend& faults = test::FailingBackend::install();
  set_num_threads(2);
  for (bool known : {true, false}) {
    int whole = 0, half = 0;
    for (int64_t at = 0; half == 0; ++at) {
      Tensor w = ones({32, 16});
      w.requires_grad_();
      if (known) eval(w);  // otherwise the captured call makes it
      Captured step = capture([&](const std::vector<Tensor>& in) {
        Tensor loss = in[0].matmul(w).square().sum();
        loss.backward();
        NoGrad guard;
        w -= 0.5 * w.grad();
        w.set_grad({});
        return std::vector<Tensor>{loss};
      });
      const Tensor x = ones({8, 32});
      step({x});
      const std::vector<float> before = w.to_vector<float>();
      faults.launches_left = at;
      try {
        step({x});
        FAIL("nothing was thrown");
      } catch (const OutOfMemory& e) {
        const bool lost = std::string(e.what()).find("stopped half-way") != std::string::npos;
        ++(lost ? half : whole);
        if (!lost) CHECK(w.to_vector<float>() == before);
      }
      faults.launches_left = -1;
    }
    CHECK((whole > 0 || !known));
    CHECK(half > 0);
  }
}
