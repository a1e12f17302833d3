// Tokenizers against a reference written in Python, and text that comes back whole.
#include <doctest/doctest.h>
#include <ingot/ingot.h>

#include <chrono>

#include "io/json.h"
#include "support/folder.h"

using namespace ingot;

namespace {

std::string file(const std::string& name) { return std::string(INGOT_TEST_FILES) + "/" + name; }

}  // namespace

TEST_CASE("bytes") {
  data::ByteTokenizer t;
  std::string text("a\0\xff", 3);
  CHECK(t.encode(text) == std::vector<int64_t>{97, 0, 255});
  CHECK(t.decode(t.encode(text)) == text);
  CHECK_THROWS_AS(t.decode({256}), Error);
}

TEST_CASE("GPT-2's byte pairs") {
  data::GPT2Tokenizer t(file("vocab.json"), file("merges.txt"));
  CHECK(t.vocab_size() > 300);
  CHECK(t.end_of_text() == t.vocab_size() - 1);
  const std::string cases = read_file(file("encoded.json")), path = "encoded.json";
  const SourceLoc loc;
  io::JsonReader in(cases, "test", path, loc);
  int count = 0;
  in.list([&] {
    std::string text;
    std::vector<int64_t> want;
    in.object([&](const std::string& key) {
      if (key == "text") {
        text = in.text();
      } else {
        in.list([&] {
          want.emplace_back();
          CHECK(in.integer(want.back()));
        });
      }
    });
    CAPTURE(text);
    CHECK(t.encode(text) == want);
    CHECK(t.encode(text) == want);  // from memory
    CHECK(t.decode(want) == text);
    ++count;
  });
  CHECK(count > 10);
  // One run of letters, and one of spaces, of 1 MB: a second at most, where looking for their ends
  // took minutes.
  std::string letters(1 << 20, 'a');
  for (size_t i = 0; i < letters.size(); ++i) letters[i] = static_cast<char>('a' + i * i % 23);
  const auto start = std::chrono::steady_clock::now();
  CHECK(t.decode(t.encode(letters)) == letters);
  CHECK(t.encode(std::string(1 << 20, ' ')).size() > 1000);
  CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(5));
  // Bytes that are no text come back too.
  std::string noise;
  for (int i = 0; i < 5000; ++i) noise += static_cast<char>(i * 7919 >> 3);
  CHECK(t.decode(t.encode(noise)) == noise);
  CHECK(t.decode({t.end_of_text()}) == "<|endoftext|>");
  CHECK_THROWS_AS(t.decode({t.vocab_size()}), Error);
}

TEST_CASE("files that do not belong together") {
  Folder f;
  std::string vocab = read_file(file("vocab.json")), merges = read_file(file("merges.txt"));
  auto fails = [&](const std::string& v, const std::string& m) {
    write_file(f / "v", v);
    write_file(f / "m", m);
    try {
      data::GPT2Tokenizer(f / "v", f / "m");
    } catch (const Error& e) {
      return e.kind() == ErrorKind::Io;
    }
    return false;
  };
  CHECK_FALSE(fails(vocab, merges));
  CHECK(fails("{}", merges));
  CHECK(fails("[]", merges));
  CHECK(fails(R"({"a": 0})", merges));
  CHECK(fails(R"({"a": 5})", merges));
  CHECK(fails(R"({"a": 0, "b": 0})", merges));
  CHECK(fails(vocab, "#version\nzz qq\n"));
  CHECK(fails(vocab, "#version\nonlyone\n"));
  for (size_t n = 0; n < vocab.size(); n += 97) CHECK(fails(vocab.substr(0, n), merges));
  CHECK_THROWS_AS(data::GPT2Tokenizer(f / "none", f / "m"), Error);
}
