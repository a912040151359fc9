// Added tokens: matched before a text is split into words.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/json.h"
#include "data/tokenizer/bpe.h"
#include "data/tokenizer/normalizers.h"
#include "data/tokenizer/tokenizer.h"

namespace hearth {

struct AddedToken {
  int32_t id = 0;
  std::string content;
  std::string decoded;  // input of decoders: the normal form if `normalized`
  bool special = false;
  bool normalized = false;   // match its normal form in the normalized text
  bool single_word = false;  // match only if no word character is beside it
  bool lstrip = false;       // the match includes white space before it
  bool rstrip = false;       // the match includes white space after it
};

class AddedTokens {
 public:
  /// Reads the list `added_tokens` (null: none). Input error for a duplicate content or id, and for
  /// an id that the official library would not assign. It keeps the ids of the vocabulary, and
  /// numbers other tokens after it.
  AddedTokens(const Json& list, const Bpe& bpe, const Normalizer& normalizer,
              const std::string& source);

  const std::vector<AddedToken>& tokens() const { return tokens_; }

  struct Match {
    TextSpan span;
    const AddedToken* token;
  };
  /// Finds tokens from left to right; among matches at one position, the longest. Skips a match if
  /// `as_text(token, span)` is true. `normalized` chooses which tokens to look for. The spans
  /// include white space that lstrip and rstrip take.
  std::vector<Match> find(std::string_view text, bool normalized,
                          const std::function<bool(const AddedToken&, TextSpan)>& as_text) const;

 private:
  // A trie of contents: (node, byte) -> child, and per node the token that ends there, or -1.
  struct Trie {
    std::unordered_map<uint64_t, uint32_t> children;
    std::vector<int32_t> ends = {-1};
    std::array<bool, 256> begins{};

    void insert(std::string_view content, int32_t token);
  };

  std::vector<AddedToken> tokens_;
  Trie raw_, normal_;
};

}  // namespace hearth
