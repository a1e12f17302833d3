// What recording, planning and replaying cost: tiny operations, and how the cost grows with the
// graph.
#include <memory>
#include <string>

#include <ingot/ingot.h>

#include "bench.h"

namespace bench {

using namespace ingot;

namespace {

// A chain, so that no addition can be dropped or shared with another.
Work tiny_adds(bool gradients) {
  Tensor a = randn({10}), b = randn({10});
  if (gradients) a.requires_grad_();
  return {[=] {
            Tensor x = a;
            for (int i = 0; i < 1000; ++i) x = x + b;
            eval(x);
          },
          0, 0, "each adds to the one before, so all are computed"};
}

// A graph of n nodes with a matrix product and a row reduction in every 20, so that the compiler
// has choices.
Tensor long_graph(Tensor x, const Tensor& w, int n) {
  for (int nodes = 0; nodes < n; nodes += 20) {
    for (int i = 0; i < 4; ++i) x = tanh(x * 0.5 + 0.1) - x;  // 4 nodes
    x = matmul(x, w);                                         // 1 node
    x = x - x.mean(-1, true);                                 // 3 nodes
  }
  return x;
}

void add_scaling_cases(int n) {
  const std::string size = std::to_string(n);
  add("scaling_record_" + size, [n] {
    Tensor x = randn({8, 16}), w = randn({16, 16});
    eval({x, w});
    return Work{.run = [=] { long_graph(x, w, n); }, .note = "recorded and dropped", .nodes = n};
  });
  add("scaling_plan_" + size, [n] {
    // Every iteration has another batch size, so none finds a cached plan.
    Tensor w = randn({16, 16}) * 0.1;
    eval(w);
    auto rows = std::make_shared<int64_t>(8);
    return Work{.run =
                    [=] {
                      eval(long_graph(ones({++*rows, 16}), w, n));
                    },
                .note = "recorded, planned and run",
                .nodes = n};
  });
  add("scaling_replay_" + size, [n] {
    Tensor x = randn({8, 16}), w = randn({16, 16}) * 0.1;
    eval({x, w});
    return Work{.run = [=] { eval(long_graph(x, w, n)); },
                .note = "recorded, found in the cache and run",
                .nodes = n};
  });
}

}  // namespace

void add_overhead_cases() {
  add("tiny_add10_x1000", [] { return tiny_adds(false); });
  add("tiny_add10_grad_x1000", [] { return tiny_adds(true); });
  for (const int n : {100, 1000, 10000, 100000}) add_scaling_cases(n);
}

}  // namespace bench
