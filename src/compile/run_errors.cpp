#include "compile/run_errors.h"

#include <string>

namespace ingot {
namespace {

Check check_of(const Val& v) {
  if (v.op == Op::Scatter) return v.attrs.as<ScatterAttrs>().check;
  return v.attrs.is<IndexAttrs>() ? v.attrs.as<IndexAttrs>().check : Check::None;
}

// extent: which column or minor, and the LinalgKind.
Error unsolvable(const RunStatus& s, const SourceLoc& loc) {
  static const char* const names[] = {"solve", "solve_triangular", "inv", "cholesky", "slogdet"};
  LinalgKind kind = static_cast<LinalgKind>(s.extent >> 32);
  std::string which = "matrix " + std::to_string(s.value),
              at = std::to_string(s.extent & 0xffffffff);
  if (kind == LinalgKind::Cholesky)
    return Error(ErrorKind::Value, names[3],
                 which + " is not positive definite: its leading minor of order " + at + " is not",
                 loc,
                 "it must be symmetric with positive eigenvalues; add a small multiple of eye(n)");
  return Error(ErrorKind::Value, names[static_cast<int>(kind)],
               which + " is singular: pivot " + at + " is 0", loc,
               "check for equal or dependent rows");
}

Error run_error(const RunStatus& s, Check check, const char* op, const SourceLoc& loc) {
  if (s.code == RunStatus::Unsolvable) return unsolvable(s, loc);
  return failed_check(check, op, s.value, s.extent, loc);
}

}  // namespace

std::vector<CheckSite> sites_of(const Plan& p, const Trace& t) {
  std::vector<CheckSite> sites;
  for (int v : p.sites) {
    const Val& val = p.graph.vals[static_cast<size_t>(v)];
    sites.push_back(
        {v, t.nodes[static_cast<size_t>(val.node)]->loc, info(val.op).name, check_of(val)});
  }
  return sites;
}

Error failure_of(const RunStatus& s, const std::vector<CheckSite>& sites) {
  for (const CheckSite& c : sites)
    if (c.value == s.site) return run_error(s, c.check, c.op, c.loc);
  return run_error(s, Check::None, "run", {});
}

}  // namespace ingot
