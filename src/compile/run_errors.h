// What a run's status word means: the error, at the line that recorded the op.
#pragma once
#include <vector>

#include "compile/executor.h"
#include "graph/checks.h"
#include "ingot/error.h"
#include "runtime/backend.h"

namespace ingot {

/// An op that may meet a bad index.
struct CheckSite {
  int value;  // its number in the plan's graph
  SourceLoc loc;
  const char* op;
  Check check;
};
/// Those of a plan; they outlive the trace.
std::vector<CheckSite> sites_of(const Plan& p, const Trace& t);

/// The error of a run that failed; its status word names the site.
Error failure_of(const RunStatus& status, const std::vector<CheckSite>& sites);

}  // namespace ingot
