// The tokenizer that `init` writes for a random checkpoint: one token per byte.
#pragma once

#include <cstdint>
#include <string>

namespace hearth {

/// 256 bytes (the id is the byte), then <|endoftext|>, <|im_start|> and
/// <|im_end|>.
inline constexpr int64_t kBuiltinVocabulary = 259;

/// Writes tokenizer.json and tokenizer_config.json (ChatML template, eos <|im_end|>, pad
/// <|endoftext|>) into an existing directory. transformers loads both files with the same ids and
/// texts. Neither file may exist yet.
void write_builtin_tokenizer(const std::string& directory);

}  // namespace hearth
