// Text to tokens and back.
#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "ingot/source.h"
#include "ingot/tensor.h"

namespace ingot::data {

class Tokenizer {
 public:
  virtual ~Tokenizer() = default;
  virtual int64_t vocab_size() const = 0;
  virtual std::vector<int64_t> encode(std::string_view text) const = 0;
  /// Throws Error(Index) for a token that is not in the vocabulary.
  virtual std::string decode(const std::vector<int64_t>& tokens,
                             SourceLoc loc = SourceLoc::current()) const = 0;
};

/// Each byte is a token.
class ByteTokenizer : public Tokenizer {
 public:
  int64_t vocab_size() const override { return 256; }
  std::vector<int64_t> encode(std::string_view text) const override;
  std::string decode(const std::vector<int64_t>& tokens,
                     SourceLoc loc = SourceLoc::current()) const override;
};

/// GPT-2's byte-pair encoding, from its two files: vocab.json (encoder.json) and merges.txt
/// (vocab.bpe). Any text comes back from its tokens unchanged; a word of more than 1024 bytes is
/// cut there. Throws Error(Io) for files that do not belong together.
class GPT2Tokenizer : public Tokenizer {
 public:
  GPT2Tokenizer(const std::string& vocab, const std::string& merges,
                SourceLoc loc = SourceLoc::current());
  ~GPT2Tokenizer() override;
  GPT2Tokenizer(const GPT2Tokenizer&);
  int64_t vocab_size() const override;
  /// "<|endoftext|>" in a text is text.
  std::vector<int64_t> encode(std::string_view text) const override;
  std::string decode(const std::vector<int64_t>& tokens,
                     SourceLoc loc = SourceLoc::current()) const override;
  /// The token "<|endoftext|>", or -1.
  int64_t end_of_text() const;

  struct State;

 private:
  std::shared_ptr<const State> s_;
};

}  // namespace ingot::data
