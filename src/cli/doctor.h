// ingot doctor: what is wrong with this machine's set-up, and the command that fixes it.
#pragma once
#include <string>
#include <vector>

#include "system.h"

namespace ingot::cli {

enum class Severity { Ok, Note, Warning, Error };

struct Finding {
  Severity severity;
  std::string code;  ///< "G03"; "" where nothing is wrong
  std::string text;
  std::string fix;  ///< a command, or what to do
};

/// All findings that follow from files, sizes and variables.
std::vector<Finding> check_system(const System& system);
/// Measured rates of the available devices, compared with what they should reach.
std::vector<Finding> check_rates();

struct DoctorArgs {
  std::string root;
  bool measure = true, json = false;
};
/// 0, or kFailed when one of the findings is an error.
int run_doctor(const DoctorArgs& args);

}  // namespace ingot::cli
