// What the layers share: the check of a size, where new parameters go, words for printing.
#pragma once
#include <string>

#include "ingot/nn/module.h"
#include "ops/common.h"

namespace ingot::nn {

inline void check_size(int64_t n, const char* what, const char* op, const SourceLoc& loc) {
  if (n < 1)
    fail(ErrorKind::Value, op, std::string(what) + " must be at least 1, not " + std::to_string(n), loc);
}

/// Type and device of new parameters, from a layer's options.
template <class O>
Options where_of(const O& o) {
  Options made;
  made.dtype = o.dtype;
  made.device = o.device;
  return made;
}

inline const char* yes_no(bool b) { return b ? "True" : "False"; }

/// Takes the tensors of this very module away whose names begin so.
void drop_tensors(const Module& m, std::string_view prefix);

}  // namespace ingot::nn
