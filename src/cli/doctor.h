// ingot doctor: what is wrong with this machine's set-up, and the command that mends it.
#pragma once
#include <string>
#include <vector>

#include "system.h"

namespace ingot::cli {

enum class Severity { Ok, Note, Warning, Error };

struct Finding {
  Severity severity;
  std::string code;  ///< "G03"; "" for what is as it should be
  std::string text;
  std::string fix;  ///< a command, or what to do
};

/// Everything that can be told from files, sizes and variables.
std::vector<Finding> check_system(const System& system);
/// Rates measured on the devices there are, against what they should give.
std::vector<Finding> check_rates();

struct DoctorArgs {
  std::string root;
  bool measure = true, json = false;
};
/// 0, or kFailed when there is an error among the findings.
int run_doctor(const DoctorArgs& args);

}  // namespace ingot::cli
