// model.safetensors.index.json over a text in memory.
#pragma once
#include <map>
#include <string>
#include <string_view>

#include "ingot/source.h"

namespace ingot::io {

/// Its weight_map: the file of each tensor. Error(Io) for a file outside the index's folder, or a
/// tensor that comes twice.
std::map<std::string, std::string> parse_index(std::string_view text, const char* op,
                                               const std::string& path, const SourceLoc& loc);

}  // namespace ingot::io
