// Shared by the layers: the check of a size, the options of new parameters, text for printing.
#pragma once
#include <string>

#include "ingot/nn/module.h"
#include "ops/common.h"

namespace ingot::nn {

inline void check_size(int64_t n, const char* what, const char* op, const SourceLoc& loc) {
  if (n < 1)
    fail(ErrorKind::Value, op, std::string(what) + " must be at least 1, not " + std::to_string(n),
         loc);
}

/// Type and device of new parameters, from a layer's options.
template <class O>
Options where_of(const O& o) {
  Options made;
  made.dtype = o.dtype;
  made.device = o.device;
  return made;
}

/// Weight and bias of a norm over channels when it is affine, and the running statistics when it
/// tracks them.
template <class O>
void register_norm(Module& m, int64_t features, const O& o, const SourceLoc& loc) {
  const Options made = where_of(o);
  if (o.affine) {
    m.register_parameter("weight", ones({features}, made), loc);
    m.register_parameter("bias", zeros({features}, made), loc);
  }
  if (!o.track_running_stats) return;
  m.register_buffer("running_mean", zeros({features}, made), true, loc);
  m.register_buffer("running_var", ones({features}, made), true, loc);
  Options count = made;
  count.dtype = int64;
  m.register_buffer("num_batches_tracked", zeros({}, count), true, loc);
}

inline const char* yes_no(bool b) { return b ? "True" : "False"; }

/// Removes this module's own tensors whose names begin with this.
void drop_tensors(const Module& m, std::string_view prefix);

}  // namespace ingot::nn
