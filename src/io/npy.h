// NumPy's format over bytes in memory.
#pragma once
#include "ingot/io.h"
#include "io/file.h"

namespace ingot::io {

Tensor parse_npy(Bytes file, const Options& options, const char* op, const std::string& path,
                 const SourceLoc& loc);
NamedTensors parse_npz(Bytes file, const Options& options, const char* op, const std::string& path,
                       const SourceLoc& loc);

}  // namespace ingot::io
