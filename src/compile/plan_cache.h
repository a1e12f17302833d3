// Compiled plans, by what was recorded. The cache alone keeps plans: whoever wants to run one again
// holds a weak_ptr and asks for a new plan when it has expired.
#pragma once
#include <memory>
#include <vector>

#include "compile/plan.h"

namespace ingot {

/// The host memory a plan holds, its compiled kernels included; an estimate from sizes and
/// capacities.
size_t bytes_of(const Plan& plan);

/// The plan with this key, or null.
std::shared_ptr<Plan> find_plan(const std::vector<uint64_t>& key);
/// Keeps a plan. Those that were used longest ago go until all fit into the limit; a plan that does
/// not fit by itself is not kept.
void keep_plan(const std::shared_ptr<Plan>& plan);
/// Notes that a plan is used now.
void touch(Plan& plan);

}  // namespace ingot
