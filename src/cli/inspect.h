// ingot inspect FILE: what is in a file of tensors. ingot devices.
#pragma once
#include <string>

namespace ingot::cli {

struct InspectArgs {
  std::string file, pattern;
  bool json = false, values = false;
};
int run_inspect(const InspectArgs& args);

int run_devices(bool json);

}  // namespace ingot::cli
