// See json.h.
#include "io/json.h"

#include <charconv>

#include "io/file.h"

namespace ingot::io {
namespace {

constexpr int kMaxDepth = 32;

void append_utf8(std::string& out, uint32_t c) {
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

}  // namespace

void JsonReader::fail(const std::string& what) const {
  fail_io(op_, path_, "is not valid JSON: " + what + " at byte " + std::to_string(at_), loc_);
}

void JsonReader::space() {
  while (at_ < s_.size() &&
         (s_[at_] == ' ' || s_[at_] == '\n' || s_[at_] == '\r' || s_[at_] == '\t'))
    ++at_;
}

bool JsonReader::eat(char c) {
  if (at_ >= s_.size() || s_[at_] != c) return false;
  ++at_;
  return true;
}

bool JsonReader::word(std::string_view w) {
  if (s_.substr(at_, w.size()) != w) return false;
  at_ += w.size();
  return true;
}

void JsonReader::enter(char open, const char* what) {
  space();
  if (!eat(open)) fail(std::string(what) + " is missing");
  if (++depth_ > kMaxDepth) fail("it is nested too deeply");
}

bool JsonReader::leave(char close) {
  space();
  if (!eat(close)) return false;
  --depth_;
  return true;
}

bool JsonReader::next(char close) {
  space();
  if (eat(',')) {
    space();
    return true;
  }
  if (!leave(close)) fail(std::string("'") + close + "' is missing");
  return false;
}

void JsonReader::colon() {
  space();
  if (!eat(':')) fail("':' is missing");
}

uint32_t JsonReader::hex4() {
  uint32_t v = 0;
  if (at_ + 4 > s_.size()) fail("an escape ends early");
  auto [end, error] = std::from_chars(s_.data() + at_, s_.data() + at_ + 4, v, 16);
  if (error != std::errc() || end != s_.data() + at_ + 4) fail("an escape is wrong");
  at_ += 4;
  return v;
}

void JsonReader::escape(std::string& out) {
  static constexpr std::string_view kFrom = "\"\\/bfnrt", kTo = "\"\\/\b\f\n\r\t";
  const char c = at_ < s_.size() ? s_[at_++] : '\0';
  if (const size_t plain = kFrom.find(c); c && plain != std::string_view::npos) {
    out += kTo[plain];
    return;
  }
  if (c != 'u') fail("an escape is wrong");
  uint32_t u = hex4();
  if (u >= 0xd800 && u < 0xe000) {
    // A pair of surrogates; one alone is not a character.
    if (u >= 0xdc00 || s_.substr(at_, 2) != "\\u") fail("an escape is wrong");
    at_ += 2;
    const uint32_t low = hex4();
    if (low < 0xdc00 || low > 0xdfff) fail("an escape is wrong");
    u = 0x10000 + ((u - 0xd800) << 10) + (low - 0xdc00);
  }
  append_utf8(out, u);
}

std::string JsonReader::text() {
  space();
  if (!eat('"')) fail("a text is missing");
  std::string out;
  while (true) {
    const size_t begin = at_;
    while (at_ < s_.size() && s_[at_] != '"' && s_[at_] != '\\' &&
           static_cast<unsigned char>(s_[at_]) >= 0x20)
      ++at_;
    out += s_.substr(begin, at_ - begin);
    if (at_ >= s_.size()) fail("a text ends early");
    const char c = s_[at_++];
    if (c == '"') break;
    if (c != '\\') fail("a string has a control character");
    escape(out);
  }
  if (!is_utf8(out)) fail("a text is not UTF-8");
  return out;
}

std::string_view JsonReader::number() {
  const size_t begin = at_;
  while (at_ < s_.size() && (std::string_view("+-.eE").find(s_[at_]) != std::string_view::npos ||
                             (s_[at_] >= '0' && s_[at_] <= '9')))
    ++at_;
  const std::string_view digits = s_.substr(begin, at_ - begin);
  double v = 0;
  auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), v);
  // A number outside double's range is still a number.
  if ((error != std::errc() && error != std::errc::result_out_of_range) ||
      end != digits.data() + digits.size() || digits.empty())
    fail("a value is wrong");
  return digits;
}

bool JsonReader::integer(int64_t& value) {
  if (kind() != Kind::Number) {
    skip();
    return false;
  }
  const std::string_view digits = number();
  auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  return error == std::errc() && end == digits.data() + digits.size();
}

JsonReader::Kind JsonReader::kind() {
  space();
  if (at_ >= s_.size()) fail("it ends early");
  switch (s_[at_]) {
    case '{':
      return Kind::Object;
    case '[':
      return Kind::List;
    case '"':
      return Kind::Text;
    case 'n':
      return Kind::Null;
    case 't':
    case 'f':
      return Kind::Bool;
    default:
      return Kind::Number;
  }
}

void JsonReader::skip() {
  switch (kind()) {
    case Kind::Object:
      return object([&](const std::string&) { skip(); });
    case Kind::List:
      return list([&] { skip(); });
    case Kind::Text:
      text();
      return;
    case Kind::Null:
      if (!word("null")) fail("a value is wrong");
      return;
    case Kind::Bool:
      if (!word("true") && !word("false")) fail("a value is wrong");
      return;
    case Kind::Number:
      number();
  }
}

void JsonReader::end() {
  space();
  if (at_ != s_.size()) fail("something follows");
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
