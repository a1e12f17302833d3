// fork(): the child computes, whatever the other threads of its parent were doing.
#include <doctest/doctest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <ingot/ingot.h>
#include <atomic>
#include <chrono>
#include <functional>
#include <thread>
#include <vector>

#include "backend/cpu/jit/row_code.h"
#include "backend/cpu/support/threads.h"
#include "graph/node.h"

using namespace ingot;

namespace {

constexpr int kSeconds = 20;  // after which a child counts as hanging

// Runs f in a child; "" when it returned true.
std::string in_child(const std::function<bool()>& f) {
  const pid_t child = fork();
  if (child == 0) {
    int code = 2;
    try {
      code = f() ? 0 : 1;
    } catch (const std::exception& e) {
      std::fprintf(stderr, "child: %s\n", e.what());
    }
    _exit(code);
  }
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(kSeconds);
  int status = 0;
  while (waitpid(child, &status, WNOHANG) == 0) {
    if (std::chrono::steady_clock::now() > end) {
      kill(child, SIGKILL);
      waitpid(child, &status, 0);
      return "it hangs";
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  if (WIFSIGNALED(status)) return "signal " + std::to_string(WTERMSIG(status));
  return WEXITSTATUS(status) == 0 ? "" : "exit code " + std::to_string(WEXITSTATUS(status));
}

bool computes() {
  Tensor a = ones({200, 200});
  return a.matmul(a).sum().item<float>() == 8e6f;
}

bool trains() {
  Tensor w = ones({64, 64});
  w.requires_grad_();
  w.matmul(w).sum().backward();
  return w.grad().sum().item<float>() == 2 * 64 * 64 * 64;
}

// Threads that compute until they are stopped.
class Busy {
 public:
  explicit Busy(int n) {
    for (int i = 0; i < n; ++i)
      threads_.emplace_back([this] {
        while (!stop_) {
          relu(randn({150, 150}).matmul(randn({150, 150}))).sum().item<float>();
          ++rounds;
        }
      });
    while (rounds < n) std::this_thread::yield();
  }
  ~Busy() {
    stop_ = true;
    for (std::thread& t : threads_) t.join();
  }
  std::atomic<int> rounds{0};

 private:
  std::atomic<bool> stop_{false};
  std::vector<std::thread> threads_;
};

}  // namespace

TEST_CASE("a child of a quiet parent: new work, pending values, another number of threads") {
  set_num_threads(3);
  CHECK(computes());
  CHECK(cpu::pool_workers() == 2);
  CHECK(in_child(computes) == "");
  CHECK(in_child(trains) == "");
  Tensor pending = ones({300, 300}) * 3;
  CHECK(in_child([&] { return pending.sum().item<float>() == 270000; }) == "");
  CHECK(in_child([] {
          if (cpu::pool_workers() != 0 || !computes() || cpu::pool_workers() != 2) return false;
          set_num_threads(4);
          if (!computes() || cpu::pool_workers() != 3) return false;
          set_num_threads(1);
          return computes();
        }) == "");
  // The parent's are as they were.
  CHECK(cpu::pool_workers() == 2);
  CHECK(pending.sum().item<float>() == 270000);
  CHECK(computes());
}

TEST_CASE("a child of a child") {
  set_num_threads(2);
  CHECK(computes());
  CHECK(in_child([] { return computes() && in_child(computes).empty() && computes(); }) == "");
}

TEST_CASE("fork while other threads compute") {
  set_num_threads(2);
  Busy busy(2);
  Tensor pending = ones({300, 300}) + 1;
  for (int i = 0; i < 25; ++i) {
    const std::string trouble = in_child([&] {
      if (i % 3 == 1) set_num_threads(1 + i % 4);
      return i % 3 == 2 ? trains() : computes() && pending.sum().item<float>() == 180000;
    });
    REQUIRE(trouble == "");
  }
  // The parent's threads continue.
  const int seen = busy.rounds;
  while (busy.rounds < seen + 4) std::this_thread::yield();
  CHECK(computes());
}

TEST_CASE("a value that is pending in another thread is computed in the child") {
  Tensor theirs;
  std::atomic<bool> made{false}, stop{false};
  std::thread other([&] {
    theirs = ones({100, 100}) * 5;
    made = true;
    while (!stop) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  });
  while (!made) std::this_thread::yield();
  CHECK(in_child([&] { return theirs.sum().item<float>() == 50000; }) == "");
  stop = true;
  other.join();
  CHECK(theirs.sum().item<float>() == 50000);
}

TEST_CASE("a limit on the size of files: kernels run without machine code") {
  CHECK(in_child([] {
          signal(SIGXFSZ, SIG_DFL);
          const rlimit little{20 << 10, 20 << 10};
          setrlimit(RLIMIT_FSIZE, &little);
          cpu::set_machine_code(true, 0);
          const int64_t made = cpu::machine_code_made();
          const float sum = (ones({37, 41}) * 2 + 1).sum().item<float>();
          return sum == 3 * 37 * 41 && cpu::machine_code_made() == made;
        }) == "");
}
