// A benchmark case: a name, and a function that sets it up and returns the work to be timed.
// Nothing of a case is created before it is requested.
#pragma once
#include <functional>
#include <string>
#include <vector>

namespace bench {

struct Work {
  std::function<void()> run = {};  // one iteration; its results must be computed when it returns
  double flops = 0;                // floating-point operations of one iteration
  double bytes = 0;                // the least traffic a perfectly fused kernel would need
  std::string note = {};
  int nodes = 0;  // of the graph, where the time per node is of interest
};

struct Case {
  std::string name;
  std::function<Work()> setup;
};

std::vector<Case>& cases();

// Each family lists its cases when it is called.
void add_matmul_cases();
void add_kernel_cases();
void add_model_cases();
void add_neural_cases();
void add_overhead_cases();

inline void add(std::string name, std::function<Work()> setup) {
  cases().push_back({std::move(name), std::move(setup)});
}

}  // namespace bench
