// See json.h.
#include "io/json.h"

#include <charconv>
#include <unordered_set>

#include "io/file.h"

namespace ingot::io {

const Json* Json::find(std::string_view name) const {
  for (const auto& [key, value] : object)
    if (key == name) return &value;
  return nullptr;
}

namespace {

constexpr int kMaxDepth = 32;

struct Parser {
  std::string_view s;
  const char* op;
  const std::string& path;
  const SourceLoc& loc;
  size_t at = 0;

  [[noreturn]] void fail(const std::string& what) const {
    fail_io(op, path, "is not valid JSON: " + what + " at byte " + std::to_string(at), loc);
  }
  void space() {
    while (at < s.size() && (s[at] == ' ' || s[at] == '\n' || s[at] == '\r' || s[at] == '\t')) ++at;
  }
  bool eat(char c) {
    if (at >= s.size() || s[at] != c) return false;
    ++at;
    return true;
  }
  void want(char c) {
    if (!eat(c)) fail(std::string("'") + c + "' is missing");
  }
  bool word(std::string_view w) {
    if (s.substr(at, w.size()) != w) return false;
    at += w.size();
    return true;
  }

  uint32_t hex4() {
    uint32_t v = 0;
    if (at + 4 > s.size()) fail("an escape ends early");
    auto [end, error] = std::from_chars(s.data() + at, s.data() + at + 4, v, 16);
    if (error != std::errc() || end != s.data() + at + 4) fail("an escape is wrong");
    at += 4;
    return v;
  }
  static void append_utf8(std::string& out, uint32_t c) {
    if (c < 0x80) {
      out += static_cast<char>(c);
    } else if (c < 0x800) {
      out += static_cast<char>(0xc0 | c >> 6);
      out += static_cast<char>(0x80 | (c & 0x3f));
    } else if (c < 0x10000) {
      out += static_cast<char>(0xe0 | c >> 12);
      out += static_cast<char>(0x80 | (c >> 6 & 0x3f));
      out += static_cast<char>(0x80 | (c & 0x3f));
    } else {
      out += static_cast<char>(0xf0 | c >> 18);
      out += static_cast<char>(0x80 | (c >> 12 & 0x3f));
      out += static_cast<char>(0x80 | (c >> 6 & 0x3f));
      out += static_cast<char>(0x80 | (c & 0x3f));
    }
  }
  void escape(std::string& out) {
    char c = at < s.size() ? s[at++] : '\0';
    switch (c) {
      case '"':
      case '\\':
      case '/':
        out += c;
        return;
      case 'b':
        out += '\b';
        return;
      case 'f':
        out += '\f';
        return;
      case 'n':
        out += '\n';
        return;
      case 'r':
        out += '\r';
        return;
      case 't':
        out += '\t';
        return;
      case 'u':
        break;
      default:
        fail("an escape is wrong");
    }
    uint32_t u = hex4();
    if (u >= 0xd800 && u < 0xdc00 && s.substr(at, 2) == "\\u") {
      at += 2;
      uint32_t low = hex4();
      if (low < 0xdc00 || low > 0xdfff) fail("an escape is wrong");
      u = 0x10000 + ((u - 0xd800) << 10) + (low - 0xdc00);
    }
    append_utf8(out, u);
  }
  std::string text() {
    want('"');
    std::string out;
    while (true) {
      if (at >= s.size()) fail("a text ends early");
      char c = s[at++];
      if (c == '"') return out;
      if (c == '\\')
        escape(out);
      else if (static_cast<unsigned char>(c) < 0x20)
        fail("a control character stands in a text");
      else
        out += c;
    }
  }

  Json number() {
    size_t begin = at;
    bool integer = true;
    while (at < s.size() && (std::string_view("+-.eE").find(s[at]) != std::string_view::npos ||
                             (s[at] >= '0' && s[at] <= '9'))) {
      integer &= s[at] == '-' || (s[at] >= '0' && s[at] <= '9');
      ++at;
    }
    Json j;
    const char *from = s.data() + begin, *to = s.data() + at;
    if (integer) {
      auto [end, error] = std::from_chars(from, to, j.integer);
      integer = error == std::errc() && end == to;
      j.number = static_cast<double>(j.integer);
    }
    if (!integer) {
      auto [end, error] = std::from_chars(from, to, j.number);
      if (error != std::errc() || end != to || from == to) fail("a value is wrong");
    }
    j.kind = integer ? Json::Kind::Integer : Json::Kind::Number;
    return j;
  }

  Json list(int depth) {
    Json j;
    j.kind = Json::Kind::List;
    want('[');
    space();
    if (eat(']')) return j;
    do {
      j.list.push_back(value(depth + 1));
      space();
    } while (eat(','));
    want(']');
    return j;
  }

  Json object(int depth) {
    Json j;
    j.kind = Json::Kind::Object;
    want('{');
    space();
    if (eat('}')) return j;
    std::unordered_set<std::string> names;
    do {
      space();
      std::string name = text();
      if (!names.insert(name).second) fail("the name " + json_text(name.substr(0, 80)) + " comes twice");
      space();
      want(':');
      j.object.push_back({std::move(name), value(depth + 1)});
      space();
    } while (eat(','));
    want('}');
    return j;
  }

  Json value(int depth) {
    if (depth > kMaxDepth) fail("it is nested too deeply");
    space();
    if (at >= s.size()) fail("it ends early");
    if (s[at] == '{') return object(depth);
    if (s[at] == '[') return list(depth);
    Json j;
    if (s[at] == '"') {
      j.kind = Json::Kind::Text;
      j.text = text();
    } else if (word("null")) {
      j.kind = Json::Kind::Null;
    } else if (word("true") || word("false")) {
      j.kind = Json::Kind::Bool;
      j.boolean = s[at - 2] == 'u';
    } else {
      return number();
    }
    return j;
  }
};

}  // namespace

Json parse_json(std::string_view text, const char* op, const std::string& path, const SourceLoc& loc) {
  Parser p{text, op, path, loc};
  Json j = p.value(0);
  p.space();
  if (p.at != text.size()) p.fail("something follows");
  return j;
}

std::string json_text(std::string_view text) {
  static const char* hex = "0123456789abcdef";
  std::string out = "\"";
  for (char c : text) {
    auto u = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (u < 0x20) {
      out += "\\u00";
      out += hex[u >> 4];
      out += hex[u & 15];
    } else {
      out += c;
    }
  }
  return out + "\"";
}

}  // namespace ingot::io
