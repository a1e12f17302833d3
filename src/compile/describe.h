// Telling people what a plan does: explain() and INGOT_DEBUG.
#pragma once
#include <string>

#include "compile/executor.h"

namespace ingot {

struct DescribeOptions {
  bool kernels = false;  // each KernelSpec
  bool memory = false;   // where buffers are stored
  bool why = false;      // why library calls did not get the kernels that the backend prefers
  const DeviceRates* rates = nullptr;  // null: the devices' own
};
std::string describe_plan(const Plan& p, const Trace& t, const DescribeOptions& options);
/// What the bytes and flops of a step take at these rates.
double predicted_seconds(const Step& s, const DeviceRates& r);
double memory_seconds(const Step& s, const DeviceRates& r);
double compute_seconds(const Step& s, const DeviceRates& r);
/// "map", "reduce", "row", "library", "copy".
const char* kind_name(const Step& s);
/// How this key differs from the last one that missed: what made another plan necessary.
std::string what_differs(const std::vector<uint64_t>& key);

}  // namespace ingot
