// When things run: nothing does until a value is needed. eval() asks for it.
#pragma once
#include <iosfwd>
#include <string>
#include <vector>

#include "ingot/tensor.h"

namespace ingot {

/// Computes these tensors, and whatever else is pending on this thread and still named by a handle,
/// as one plan. Throws what the run throws; then everything stays pending.
void eval(const std::vector<Tensor>& tensors, SourceLoc loc = SourceLoc::current());
inline void eval(const Tensor& tensor, SourceLoc loc = SourceLoc::current()) { tensor.eval_(loc); }
/// Runs what is pending on this thread and waits for all devices; raises device errors that have
/// not been seen yet.
void synchronize(SourceLoc loc = SourceLoc::current());

/// Threads the CPU devices use; Error(Value) unless n >= 1. At start: as many as the machine has
/// cores.
void set_num_threads(int n);
int get_num_threads();

/// Fused kernels (on at start unless INGOT_FUSE=0) or one kernel per op, for comparing results.
void set_fusion(bool on);
/// Each op runs at its own line (at start only with INGOT_EAGER=1), so that an error shows there
/// and a debugger sees the value. Slow, and a step that fails half-way has changed what came
/// before. Captured functions are recorded all the same.
void set_eager(bool on);

/// The precision of float32 matrix products on GPUs: "highest" (at start: full float32) or "high"
/// (TF32: inputs rounded to 10 bits of mantissa, several times faster). The CPU's are always exact.
/// Throws Error(Value) for another word.
void set_matmul_precision(const std::string& precision, SourceLoc loc = SourceLoc::current());
std::string get_matmul_precision();

/// Compiled plans are kept, with their kernels and those of captured functions, up to a number of
/// bytes of host memory: 256 MiB at start, or INGOT_PLAN_CACHE_MIB. The ones used longest ago go
/// first and are compiled again when they are needed; a captured function whose plan was evicted is
/// recorded again. 0 keeps none. INGOT_DEBUG=plan reports each new plan and each eviction.
struct PlanCacheInfo {
  int64_t plans = 0;
  size_t bytes = 0, limit = 0;  ///< bytes never exceed limit
  int64_t evicted = 0;          ///< since the start
};
PlanCacheInfo plan_cache_info();
void set_plan_cache_limit(size_t bytes);
void clear_plan_cache();

/// What a run would do: kernels, bytes, flops, predicted times, memory. See explain().
struct Explanation {
  std::string
      text;  ///< a table, one line per kernel, with totals, peak and what is kept for live handles
  int generated = 0, library = 0, copies = 0, launches = 0;
  double bytes_read = 0, bytes_written = 0, flops = 0;
  double predicted_us = 0;           ///< at the device's rates
  size_t peak_bytes = 0;             ///< arena and outputs of this run: exact
  std::vector<std::string> kernels;  ///< the ops of each step
  /// A library call, the kernel that runs it, and why those that the backend prefers do not, each
  /// as "kernel: reason". A composite that no kernel takes has no kernel: it was decomposed.
  struct Choice {
    std::string call, kernel;
    std::vector<std::string> refused;
  };
  std::vector<Choice> choices;
};
std::ostream& operator<<(std::ostream& out, const Explanation& e);

struct ExplainOptions {
  std::string rates = "";  ///< whose rates predict the times: "h200"; "": the tensors' own device
  bool why = false;        ///< the text says why a library call did not get a preferred kernel
};
/// The plan that eval(tensors) would run now: compiled, not run. Throws Error(Value) for rates it
/// does not know.
Explanation explain(const std::vector<Tensor>& tensors, const ExplainOptions& options = {},
                    SourceLoc loc = SourceLoc::current());
inline Explanation explain(const Tensor& tensor, const ExplainOptions& options = {},
                           SourceLoc loc = SourceLoc::current()) {
  return explain(std::vector<Tensor>{tensor}, options, loc);
}

}  // namespace ingot
