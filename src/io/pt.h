// PyTorch's files over bytes in memory.
#pragma once
#include "ingot/io.h"
#include "io/file.h"

namespace ingot::io {

NamedTensors parse_pt(Bytes file, const Options& options, const char* op, const std::string& path,
                      const SourceLoc& loc);

}  // namespace ingot::io
