// Runs that a device has not answered for yet. Their errors are raised at the next synchronisation.
#pragma once
#include <cstdint>
#include <vector>

#include "compile/run_errors.h"
#include "ingot/device.h"

namespace ingot {

void watch_run(Device d, uint64_t ticket, std::vector<CheckSite> sites);
/// Raises the errors of runs that the device has answered for (all of them when `wait`).
void check_watched(Device d, bool wait);

}  // namespace ingot
