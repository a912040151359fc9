// Added tokens: texts that are found before a text is cut into words.
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
  std::string decoded;  // what decoders see: the normal form of a normalized token
  bool special = false;
  bool normalized = false;   // found in the normalized text, by its own normal form
  bool single_word = false;  // not beside a character of a word
  bool lstrip = false;       // takes the white space before it
  bool rstrip = false;       // and behind it
};

class AddedTokens {
 public:
  /// From the list `added_tokens` (null: none). Input error for two with one content or id, and for
  /// an id that the official library would not give: a token of the vocabulary keeps its id, others
  /// are numbered on from the vocabulary's size.
  AddedTokens(const Json& list, const Bpe& bpe, const Normalizer& normalizer,
              const std::string& source);

  const std::vector<AddedToken>& tokens() const { return tokens_; }

  struct Match {
    TextSpan span;
    const AddedToken* token;
  };
  /// The tokens in a text in order: the leftmost, and of those that begin there the longest; then on
  /// from its end. `as_text(token, span)` says that a match is to be passed over. `normalized`
  /// chooses which tokens are looked for. lstrip and rstrip are in the spans.
  std::vector<Match> find(std::string_view text, bool normalized,
                          const std::function<bool(const AddedToken&, TextSpan)>& as_text) const;

 private:
  // A trie of contents: the child of a node by (node, byte), and the token that ends in a node.
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
