// The times of single launches, for INGOT_DEBUG=time and ingot::Profile.
#pragma once
#include <span>
#include <vector>

#include "compile/executor.h"
#include "graph/thread_state.h"

namespace ingot {

/// Does this thread only plan? (DryRun)
inline bool is_dry_run() { return this_thread.dry_run; }
/// Records a run that was only planned, for DryRun::largest().
void note_dry_run(const Plan& p, const Trace& t);
/// Forgets them; called where the outermost DryRun begins and ends.
void clear_dry_runs();
/// Is a Profile active, or INGOT_DEBUG=time set?
bool launches_are_timed();
/// Reports to those who want them: steps that began at `start` (see clock_us) and what each took.
void report_launch_times(std::span<const Step> steps, double start,
                         const std::vector<double>& microseconds);
/// Microseconds of the clock that launches are timed by.
double clock_us();

}  // namespace ingot
