// JSON, read strictly: the headers of safetensors files, vocabularies, lists of labels. Nesting is limited;
// numbers keep their integers exactly.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ingot/source.h"

namespace ingot::io {

struct JsonMember;

struct Json {
  enum class Kind : uint8_t { Null, Bool, Integer, Number, Text, List, Object };
  Kind kind = Kind::Null;
  bool boolean = false;
  int64_t integer = 0;  // Integer
  double number = 0;    // Integer and Number
  std::string text;
  std::vector<Json> list;
  std::vector<JsonMember> object;  // in the file's order; names are unique

  /// The member of that name, or null.
  const Json* find(std::string_view name) const;
};

struct JsonMember {
  std::string name;
  Json value;
};

/// Throws Error(Io), naming the file and the place, for anything that is not one JSON value.
Json parse_json(std::string_view text, const char* op, const std::string& path, const SourceLoc& loc);
/// "text" with quotes and escapes.
std::string json_text(std::string_view text);

}  // namespace ingot::io
