// Byte-level tokenizers. GPT-2's splits a text into words by a fixed rule, writes each byte
// as a printable character, and joins the pair of parts that comes first in the list of
// merges until none is left.
#include "ingot/data/tokenizers.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <memory>
#include <mutex>
#include <queue>
#include <unordered_map>

#include "data/tokenizers.h"
#include "io/budget.h"
#include "io/file.h"
#include "io/json.h"
#include "ops/common.h"

namespace ingot::data {

std::vector<int64_t> ByteTokenizer::encode(std::string_view text) const {
  std::vector<int64_t> tokens;
  tokens.reserve(text.size());
  for (char c : text) tokens.push_back(static_cast<unsigned char>(c));
  return tokens;
}

std::string ByteTokenizer::decode(const std::vector<int64_t>& tokens, SourceLoc loc) const {
  std::string text;
  for (int64_t t : tokens) {
    if (t < 0 || t > 255)
      fail(ErrorKind::Index, "decode", "the token " + std::to_string(t) + " is not a byte",
           user_loc(loc));
    text += static_cast<char>(t);
  }
  return text;
}

// ---- Words

namespace {

struct Range {
  uint32_t low, high;
};
#include "data/unicode.inc"

template <size_t N>
bool within(const Range (&ranges)[N], uint32_t c) {
  const Range* r = std::lower_bound(std::begin(ranges), std::end(ranges), c,
                                    [](const Range& a, uint32_t v) { return a.high < v; });
  return r != std::end(ranges) && r->low <= c;
}

enum class Class : uint8_t { Letter, Number, Space, Other };

Class class_of(uint32_t c) {
  if (c < 128) {
    if ((c | 32) >= 'a' && (c | 32) <= 'z') return Class::Letter;
    if (c >= '0' && c <= '9') return Class::Number;
    return c == ' ' || (c >= 9 && c <= 13) ? Class::Space : Class::Other;
  }
  bool space = c == 0x85 || c == 0xa0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200a) ||
               c == 0x2028 || c == 0x2029 || c == 0x202f || c == 0x205f || c == 0x3000;
  return space                 ? Class::Space
         : within(kLetters, c) ? Class::Letter
         : within(kNumbers, c) ? Class::Number
                               : Class::Other;
}

// The character at `at` and its length; a byte that is not UTF-8 represents itself.
uint32_t character(std::string_view s, size_t at, size_t& length) {
  auto byte = [&](size_t i) {
    return at + i < s.size() ? static_cast<unsigned char>(s[at + i]) : 0u;
  };
  auto more = [&](size_t i) { return (byte(i) & 0xc0) == 0x80; };
  uint32_t b = byte(0);
  length = 1;
  if (b >= 0xc2 && b < 0xe0 && more(1)) return length = 2, (b & 0x1f) << 6 | (byte(1) & 0x3f);
  if (b >= 0xe0 && b < 0xf0 && more(1) && more(2))
    return length = 3, (b & 15) << 12 | (byte(1) & 0x3f) << 6 | (byte(2) & 0x3f);
  if (b >= 0xf0 && b < 0xf5 && more(1) && more(2) && more(3))
    return length = 4,
           (b & 7) << 18 | (byte(1) & 0x3f) << 12 | (byte(2) & 0x3f) << 6 | (byte(3) & 0x3f);
  return b < 128 ? b : 0xfffd;
}

// The end of the run of characters of one class.
size_t run_end(std::string_view s, size_t at, Class c) {
  size_t n = 0;
  while (at < s.size() && class_of(character(s, at, n)) == c) at += n;
  return at;
}

}  // namespace

// 's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
size_t gpt2_word_end(std::string_view s, size_t at) {
  for (std::string_view tail : {"'s", "'t", "'re", "'ve", "'m", "'ll", "'d"})
    if (s.substr(at, tail.size()) == tail) return at + tail.size();
  size_t n = 0, start = at + (s[at] == ' ' ? 1 : 0);
  if (start < s.size()) {
    Class c = class_of(character(s, start, n));
    if (c != Class::Space) return run_end(s, start, c);
  }
  size_t end = run_end(s, at, Class::Space);
  if (end == s.size()) return end;
  // The last space belongs to the word that follows, unless it is the only one.
  size_t last = at, next = at;
  while (next < end) {
    last = next;
    character(s, next, n);
    next += n;
  }
  return last > at ? last : end;
}

// ---- The vocabulary

struct GPT2Tokenizer::State {
  std::vector<std::string> tokens;  // by index, as bytes
  std::array<int64_t, 256> bytes{};
  struct Merge {
    int32_t rank, result;
  };
  std::unordered_map<uint64_t, Merge> merges;  // of two tokens' indices
  int64_t end_of_text = -1;
  mutable std::mutex mutex;
  mutable std::unordered_map<std::string, std::vector<int64_t>> known;  // words seen before

  static uint64_t key(int64_t a, int64_t b) {
    return static_cast<uint64_t>(a) << 32 | static_cast<uint64_t>(b);
  }
  std::vector<int64_t> word(std::string_view w) const;
};

namespace {

// Bytes as GPT-2 writes them: printable ones as themselves, the others from U+0100 on.
struct Alphabet {
  std::array<uint32_t, 256> of_byte{};
  std::unordered_map<uint32_t, uint8_t> to_byte;
  Alphabet() {
    uint32_t next = 256;
    for (uint32_t b = 0; b < 256; ++b) {
      bool plain = (b >= 33 && b <= 126) || (b >= 161 && b <= 172) || b >= 174;
      of_byte[b] = plain ? b : next++;
      to_byte[of_byte[b]] = static_cast<uint8_t>(b);
    }
  }
};

const Alphabet& alphabet() {
  static const Alphabet a;
  return a;
}

// A token as bytes; false when it has a character that represents no byte.
bool as_bytes(std::string_view written, std::string& out) {
  out.clear();
  for (size_t at = 0, n = 0; at < written.size(); at += n) {
    auto found = alphabet().to_byte.find(character(written, at, n));
    if (found == alphabet().to_byte.end()) return false;
    out += static_cast<char>(found->second);
  }
  return true;
}

}  // namespace

std::shared_ptr<const GPT2Tokenizer::State> parse_gpt2(std::string_view vocab,
                                                       std::string_view merges,
                                                       const std::string& vocab_path,
                                                       const std::string& merges_path,
                                                       const SourceLoc& loc) {
  const char* op = "GPT2Tokenizer";
  auto s = std::make_shared<GPT2Tokenizer::State>();
  io::Budget budget(vocab.size() + merges.size(), op, vocab_path, loc);
  io::JsonReader json(vocab, op, vocab_path, loc);
  if (json.kind() != io::JsonReader::Kind::Object)
    io::fail_io(op, vocab_path, "is not a vocabulary", loc);
  std::vector<std::pair<int64_t, std::string>> listed;  // as they are written
  json.object([&](std::string written) {
    int64_t number = -1;
    if (!json.integer(number)) number = -1;
    budget.take(8 * sizeof(std::string) + 4 * written.size());
    listed.emplace_back(number, std::move(written));
  });
  json.end();
  if (listed.empty()) io::fail_io(op, vocab_path, "is not a vocabulary", loc);
  std::unordered_map<std::string, int64_t> numbers;
  s->tokens.resize(listed.size());
  std::vector<bool> seen(listed.size());
  for (auto& [number, written] : listed) {
    if (number < 0 || static_cast<size_t>(number) >= seen.size() ||
        seen[static_cast<size_t>(number)])
      io::fail_io(op, vocab_path, "its tokens are not numbered from 0 on, each once", loc);
    const auto place = static_cast<size_t>(number);
    seen[place] = true;
    // What is not written in bytes, such as a special token, represents itself.
    if (written == "<|endoftext|>") s->end_of_text = number;
    if (written == "<|endoftext|>" || !as_bytes(written, s->tokens[place]))
      s->tokens[place] = std::move(written);
    else if (!numbers.emplace(s->tokens[place], number).second)
      io::fail_io(op, vocab_path, "has the token \"" + written.substr(0, 80) + "\" twice", loc);
  }
  for (int b = 0; b < 256; ++b) {
    auto at = numbers.find(std::string(1, static_cast<char>(b)));
    if (at == numbers.end())
      io::fail_io(op, vocab_path, "has no token for the byte " + std::to_string(b), loc);
    s->bytes[static_cast<size_t>(b)] = at->second;
  }
  int32_t rank = 0;
  for (size_t at = 0, line = 1; at < merges.size(); ++line) {
    size_t end = std::min(merges.find('\n', at), merges.size());
    std::string_view l = merges.substr(at, end - at);
    at = end + 1;
    if (!l.empty() && l.back() == '\r') l.remove_suffix(1);
    if (l.empty() || (line == 1 && l.rfind("#version", 0) == 0)) continue;
    size_t space = l.find(' ');
    std::string a, b;
    if (space == std::string_view::npos || !as_bytes(l.substr(0, space), a) ||
        !as_bytes(l.substr(space + 1), b))
      io::fail_io(op, merges_path, "line " + std::to_string(line) + " is not a pair of tokens",
                  loc);
    auto first = numbers.find(a), second = numbers.find(b), joined = numbers.find(a + b);
    if (first == numbers.end() || second == numbers.end() || joined == numbers.end())
      io::fail_io(
          op, merges_path,
          "line " + std::to_string(line) + " joins tokens that the vocabulary does not have", loc,
          "give the two files of one model");
    budget.take(64);
    s->merges.emplace(GPT2Tokenizer::State::key(first->second, second->second),
                      GPT2Tokenizer::State::Merge{rank++, static_cast<int32_t>(joined->second)});
  }
  return s;
}

// Joins pairs in order of their rank, from the left where ranks are equal. The parts are a linked
// list; a heap holds the pairs that can be joined, some of which are stale when they are popped.
std::vector<int64_t> GPT2Tokenizer::State::word(std::string_view w) const {
  struct Part {
    int64_t token;
    int32_t before, after;  // -1: none
  };
  struct Pair {
    int32_t rank, left, result;
    int64_t first, second;
    bool operator<(const Pair& o) const {
      return std::pair(rank, left) > std::pair(o.rank, o.left);
    }
  };
  const auto n = static_cast<int32_t>(w.size());
  std::vector<Part> parts;
  for (int32_t i = 0; i < n; ++i)
    parts.push_back({bytes[static_cast<unsigned char>(w[static_cast<size_t>(i)])], i - 1,
                     i + 1 < n ? i + 1 : -1});
  auto at = [&](int32_t i) -> Part& { return parts[static_cast<size_t>(i)]; };
  std::priority_queue<Pair> pairs;
  auto offer = [&](int32_t left) {
    if (left < 0 || at(left).after < 0) return;
    const int64_t a = at(left).token, b = at(at(left).after).token;
    if (auto m = merges.find(key(a, b)); m != merges.end())
      pairs.push({m->second.rank, left, m->second.result, a, b});
  };
  for (int32_t i = 0; i + 1 < n; ++i) offer(i);
  while (!pairs.empty()) {
    const Pair p = pairs.top();
    pairs.pop();
    const int32_t right = at(p.left).token == p.first ? at(p.left).after : -1;
    if (right < 0 || at(right).token != p.second) continue;
    at(p.left).token = p.result;
    at(p.left).after = at(right).after;
    if (at(right).after >= 0) at(at(right).after).before = p.left;
    at(right).token = -1;
    offer(at(p.left).before);
    offer(p.left);
  }
  std::vector<int64_t> result;
  for (int32_t i = n ? 0 : -1; i >= 0; i = at(i).after) result.push_back(at(i).token);
  return result;
}

GPT2Tokenizer::GPT2Tokenizer(const std::string& vocab, const std::string& merges, SourceLoc where) {
  SourceLoc loc = user_loc(where);
  constexpr size_t kLimit = size_t{1}
                            << 25;  // the largest vocabularies in use have a quarter of this
  s_ = io::reading("GPT2Tokenizer", vocab, loc, [&] {
    return parse_gpt2(io::read_text(vocab, kLimit, "GPT2Tokenizer", loc),
                      io::read_text(merges, kLimit, "GPT2Tokenizer", loc), vocab, merges, loc);
  });
}
GPT2Tokenizer::~GPT2Tokenizer() = default;
GPT2Tokenizer::GPT2Tokenizer(const GPT2Tokenizer&) = default;

int64_t GPT2Tokenizer::vocab_size() const { return static_cast<int64_t>(s_->tokens.size()); }
int64_t GPT2Tokenizer::end_of_text() const { return s_->end_of_text; }

std::vector<int64_t> encode_gpt2(const GPT2Tokenizer::State& s, std::string_view text) {
  constexpr size_t kMostKnown = 1 << 17, kLongKnown = 32, kLongest = 1 << 10;
  std::vector<int64_t> tokens;
  for (size_t at = 0; at < text.size();) {
    // A word of thousands of bytes is cut, and read no further than that (a character has up to 4
    // bytes), so that its cost stays proportional.
    size_t end = std::min(gpt2_word_end(text.substr(0, at + kLongest + 8), at), at + kLongest);
    std::string w(text.substr(at, end - at));
    at = end;
    if (w.size() > kLongKnown) {
      const std::vector<int64_t> made = s.word(w);
      tokens.insert(tokens.end(), made.begin(), made.end());
      continue;
    }
    std::lock_guard lock(s.mutex);
    auto known = s.known.find(w);
    if (known == s.known.end()) {
      if (s.known.size() >= kMostKnown) s.known.clear();
      known = s.known.emplace(w, s.word(w)).first;
    }
    tokens.insert(tokens.end(), known->second.begin(), known->second.end());
  }
  return tokens;
}

std::string decode_gpt2(const GPT2Tokenizer::State& s, const std::vector<int64_t>& tokens,
                        const SourceLoc& loc) {
  std::string text;
  for (int64_t t : tokens) {
    if (t < 0 || t >= static_cast<int64_t>(s.tokens.size()))
      fail(ErrorKind::Index, "decode",
           "there is no token " + std::to_string(t) + ", only " + std::to_string(s.tokens.size()),
           user_loc(loc));
    text += s.tokens[static_cast<size_t>(t)];
  }
  return text;
}

std::vector<int64_t> GPT2Tokenizer::encode(std::string_view text) const {
  return encode_gpt2(*s_, text);
}
std::string GPT2Tokenizer::decode(const std::vector<int64_t>& tokens, SourceLoc loc) const {
  return decode_gpt2(*s_, tokens, loc);
}

}  // namespace ingot::data
