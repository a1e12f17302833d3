// The GPT-2 tokenizer over texts in memory, as the fuzz target calls it.
#pragma once
#include <memory>

#include "ingot/data/tokenizers.h"

namespace ingot::data {

/// The end of the word that begins at `at`.
size_t gpt2_word_end(std::string_view text, size_t at);
std::shared_ptr<const GPT2Tokenizer::State> parse_gpt2(std::string_view vocab,
                                                       std::string_view merges,
                                                       const std::string& vocab_path,
                                                       const std::string& merges_path,
                                                       const SourceLoc& loc);
std::vector<int64_t> encode_gpt2(const GPT2Tokenizer::State& s, std::string_view text);
std::string decode_gpt2(const GPT2Tokenizer::State& s, const std::vector<int64_t>& tokens,
                        const SourceLoc& loc);

}  // namespace ingot::data
