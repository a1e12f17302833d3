// PyTorch's files over bytes in memory.
#pragma once
#include "ingot/io.h"
#include "io/file.h"

namespace ingot::io {

/// Whether a zip archive is one of PyTorch's.
bool is_pt(Bytes zip, const char* op, const std::string& path, const SourceLoc& loc);
/// `tree`, where it is not null, is given how values are nested: see Contents in ingot/io.h.
NamedTensors parse_pt(Bytes file, const Options& options, const char* op, const std::string& path,
                      const SourceLoc& loc, std::string* tree = nullptr);

}  // namespace ingot::io
