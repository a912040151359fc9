// The tokenizer of a model directory as metadata of a GGUF file, as the ggml project's converter writes it.
#pragma once

#include <cstdint>
#include <string>

#include "base/json.h"
#include "checkpoint/gguf_metadata.h"

namespace hearth {

/// The files that describe a tokenizer; null where missing.
struct TokenizerFiles {
  Json tokenizer, config, model_config;  // tokenizer.json, tokenizer_config.json, config.json
  std::string source;                    // the first one's path, for messages
};

/// Reads them from a model directory. Input error for a tokenizer that this program does not read.
TokenizerFiles read_tokenizer_files(const std::string& directory, bool follow_links);

/// Adds tokenizer.ggml.*: model, pre-tokenizer, tokens with their types, merges or scores, ids of
/// special tokens. `vocabulary`: rows of the embedding; ids without a token become unused tokens.
///
/// Byte-level BPE is "gpt2", with the pre-tokenizer that its pattern says: "qwen2", "llama-bpe",
/// "gpt-2", or for the architecture "olmoe" "olmo". BPE with byte fallback is "llama". There a
/// token's score is minus its rank: the order of the merges that make it, then of ids. So the ggml runtime
/// merges as tokenizer.json does. (Llama 2's tokenizer.model has these scores.) Without
/// tokenizer.json the model is "none": the ggml runtime then takes token ids alone.
///
/// Input error for any other tokenizer, and for ids beyond the vocabulary.
void add_gguf_vocabulary(const TokenizerFiles& files, int64_t vocabulary,
                         const std::string& architecture, GgufMetadata& metadata);

}  // namespace hearth
