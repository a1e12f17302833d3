// model.safetensors.index.json over a text in memory, as the fuzz target calls it.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "ingot/source.h"

namespace ingot::io {

/// The files that its weight_map names, each once; Error(Io) for one outside the index's folder.
std::vector<std::string> parse_index(std::string_view text, const char* op, const std::string& path,
                                     const SourceLoc& loc);

}  // namespace ingot::io
