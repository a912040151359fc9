// The members of a Tokenizer. Private to src/data/tokenizer/.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "data/tokenizer/added_tokens.h"
#include "data/tokenizer/bpe.h"
#include "data/tokenizer/decoders.h"
#include "data/tokenizer/normalizers.h"
#include "data/tokenizer/post_processor.h"
#include "data/tokenizer/pre_tokenizers.h"
#include "data/tokenizer/tokenizer.h"

namespace hearth {

struct Tokenizer::Parts {
  struct Known {
    std::string_view text;
    bool special = false;
    bool present = false;
  };

  Parts(const Json& json, const Json& config, const std::string& directory);

  std::string source;  // the file, for messages
  std::string config_source;
  Normalizer normalizer;
  PreTokenizer pre_tokenizer;
  Bpe bpe;
  AddedTokens added;
  PostProcessor post_processor;
  Decoder decoder;
  std::vector<Known> by_id;
  std::string end_token;
  std::optional<int32_t> end_id;

 private:
  void add(int32_t id, std::string_view text);
  void read_end_token(const Json& config);
};

}  // namespace hearth
