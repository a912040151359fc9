// Added tokens: texts that are found before anything else is done to a text.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/json.h"
#include "data/tokenizer/tokenizer.h"

namespace hearth {

struct AddedToken {
  int32_t id = 0;
  std::string content;
  bool special = false;
};

class AddedTokens {
 public:
  /// From the list `added_tokens` (null: none); input error for one that does not match plainly
  /// (lstrip, rstrip, single_word, normalized), and for two with one content or id.
  AddedTokens(const Json& list, const std::string& source);

  const std::vector<AddedToken>& tokens() const { return tokens_; }

  struct Match {
    TextSpan span;
    int32_t id;
  };
  /// The leftmost match from `start` on, the longest of those that begin there.
  std::optional<Match> find(std::string_view text, size_t start) const;

 private:
  void insert(const AddedToken& token);

  std::vector<AddedToken> tokens_;
  // A trie: the child of a node by (node, byte), and the token that ends in a node or -1.
  std::unordered_map<uint64_t, uint32_t> children_;
  std::vector<int32_t> ends_ = {-1};
  std::array<bool, 256> begins_{};
};

}  // namespace hearth
