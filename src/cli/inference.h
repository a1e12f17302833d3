// Inference with trained networks: ingot eval, predict, generate.
#pragma once
#include <string>
#include <vector>

namespace ingot::cli {

struct EvalArgs {
  std::string run, device;
  bool json = false;
};
int run_eval(const EvalArgs& args);

struct PredictArgs {
  std::string run, device;
  std::vector<std::string> inputs;
  int top = 3;
  bool json = false;
};
int run_predict(const PredictArgs& args);

struct GenerateArgs {
  std::string run, device, prompt;
  int64_t length = 300;
  double temperature = 0.8;
  uint64_t seed = 0;
};
int run_generate(const GenerateArgs& args);

}  // namespace ingot::cli
