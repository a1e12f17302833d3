// ingot profile: where the time of a recipe's step goes.
#pragma once
#include <string>

#include "train.h"

namespace ingot::cli {

struct ProfileArgs {
  TrainArgs recipe;
  std::string trace;  ///< file for Perfetto; "": out/RECIPE-trace.json
  int steps = 20, top = 10;
  bool json = false;
};
int run_profile(const ProfileArgs& args);

}  // namespace ingot::cli
