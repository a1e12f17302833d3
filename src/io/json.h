// JSON, read strictly and value by value: the headers of safetensors files, vocabularies,
// lists of labels. No tree is built, so a text takes no more memory than its reader keeps
// of it. Nesting is limited.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "ingot/source.h"

namespace ingot::io {

class JsonReader {
 public:
  enum class Kind : uint8_t { Null, Bool, Number, Text, List, Object };

  JsonReader(std::string_view text, const char* op, const std::string& path, const SourceLoc& loc)
      : s_(text), op_(op), path_(path), loc_(loc) {}

  /// The kind of the next value.
  Kind kind();
  /// The next value, which must be of that kind; otherwise Error(Io) naming the file and the
  /// position.
  std::string text();
  /// A 64-bit integer; anything else is skipped and returns false.
  bool integer(int64_t& value);
  /// Calls f(name) for each member; f must read its value.
  template <class F>
  void object(F&& f) {
    enter('{', "an object");
    for (bool more = !leave('}'); more; more = next('}')) {
      std::string name = text();
      colon();
      f(std::move(name));
    }
  }
  /// Calls f() for each element, which f must read.
  template <class F>
  void list(F&& f) {
    enter('[', "a list");
    for (bool more = !leave(']'); more; more = next(']')) f();
  }
  /// Skips any value.
  void skip();
  /// Error(Io) unless nothing follows.
  void end();
  [[noreturn]] void fail(const std::string& what) const;

 private:
  void space();
  bool eat(char c);
  bool word(std::string_view w);
  void enter(char open, const char* what);
  bool leave(char close);
  bool next(char close);
  void colon();
  uint32_t hex4();
  void escape(std::string& out);
  std::string_view number();

  std::string_view s_;
  const char* op_;
  const std::string& path_;
  const SourceLoc& loc_;
  size_t at_ = 0;
  int depth_ = 0;
};

/// "text" with quotes and escapes.
std::string json_text(std::string_view text);

}  // namespace ingot::io
