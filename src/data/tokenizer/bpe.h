// Byte-pair encoding: the model of tokenizer.json.
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

/// The vocabulary and its merges. Immutable: threads may share it.
class Bpe {
 public:
  /// Reads the object `model`; `source` names the file in messages. `byte_words`: if takes_bytes(),
  /// the caller passes words as raw bytes instead of byte-level characters.
  Bpe(const Json& model, const std::string& source, bool byte_words);
  Bpe(Bpe&&) = default;
  Bpe(const Bpe&) = delete;  // the maps point into tokens_

  /// Whether words are raw bytes: `byte_words` was set, and every byte has its own token.
  bool takes_bytes() const { return takes_bytes_; }

  /// Appends the ids of a word, and their spans moved by `offset`. Starts from characters (or
  /// bytes). A character outside the vocabulary becomes its bytes (`byte_fallback`), the unknown
  /// token, or nothing. Merges by lowest rank, leftmost first, in O(n log n).
  void encode(std::string_view word, uint32_t offset, Encoding& out) const;

  /// In the order of the file.
  struct Token {
    int32_t id;
    std::string text;
  };
  const std::vector<Token>& tokens() const { return tokens_; }
  std::optional<int32_t> id_of(std::string_view text) const;

 private:
  // A token in a word during merging, in a linked list. `token` is an index into tokens_.
  struct Symbol {
    int32_t token, previous, next;
    uint32_t begin, end;
  };
  struct Candidate {
    int32_t rank, left, token;
  };
  struct Scratch;
  struct Merge {
    uint64_t pair;  // left << 32 | right, kNoPair in a free slot
    int32_t rank, token;
  };

  void read_vocabulary(const Json& vocabulary, const std::string& where);
  void read_merges(const Json& merges, const std::string& where);
  void read_unknown(const Json& model, const std::string& where);
  int32_t index_of(std::string_view text, const std::string& where) const;
  void add_merge(int32_t left, int32_t right, int32_t rank, int32_t joined);
  const Merge* merge_of(int32_t left, int32_t right) const;
  std::optional<int32_t> find(std::string_view text) const;

  void encode_piece(std::string_view word, uint32_t offset, Encoding& out) const;
  void note_pairs(std::string_view token);
  bool may_merge(uint32_t left, uint32_t right) const;
  int32_t token_of(uint32_t code, std::string_view character) const;
  void encode_uncached(std::string_view word, Scratch& scratch) const;
  void start_from_characters(std::string_view word, std::vector<Symbol>& symbols) const;
  void merge_short(std::vector<Symbol>& symbols, std::vector<Candidate>& pairs) const;
  void merge_long(std::vector<Symbol>& symbols, std::vector<Candidate>& heap) const;

  std::vector<Token> tokens_;
  std::unordered_map<std::string_view, int32_t> by_text_;
  std::unordered_map<std::string, int32_t> by_bytes_;  // with takes_bytes_ and ignore_merges_
  std::array<int32_t, 256> byte_tokens_{};  // by byte of the alphabet; -1: not in the vocabulary
  std::array<int32_t, 256> fallback_tokens_{};  // <0xNN>, likewise
  std::vector<int32_t> character_tokens_;       // by character below U+10000; -1: none
  // A Bloom filter: whether two characters are adjacent in a token that a merge makes. If not, no
  // merge joins them, so a word can be cut between them. Empty: never cut.
  std::vector<bool> neighbours_;
  std::vector<Merge> merges_;    // open addressing, at most half full
  std::string prefix_, suffix_;  // of inner characters; of the last character
  int32_t unknown_ = -1;
  bool takes_bytes_ = false;
  bool byte_fallback_ = false;
  bool fuse_unknown_ = false;
  bool ignore_merges_ = false;  // a word that is a token is not merged
  uint64_t serial_ = 0;         // identifies this model in the thread's WordCache
};

}  // namespace hearth
