// Byte-pair encoding: the model of tokenizer.json.
#pragma once

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
  /// Space that encoding needs; reused from word to word by one thread.
  struct Scratch {
    struct Symbol {
      int32_t token, previous, next;
      uint32_t begin, end;
    };
    struct Candidate {
      int32_t rank, left, token;
    };
    std::vector<Symbol> symbols;
    std::vector<Candidate> heap;
  };

  /// From the object `model`; `source` names the file in messages.
  Bpe(const Json& model, const std::string& source);
  Bpe(Bpe&&) = default;
  Bpe(const Bpe&) = delete;  // the maps look into tokens_

  /// Appends the ids of a word (bytes of the text, not of the alphabet), and their spans moved by
  /// `offset`. Merges by lowest rank, leftmost first; time n log n.
  void encode(std::string_view word, uint32_t offset, Encoding& out, Scratch& scratch) const;

  /// In the order of the file. `text` is in the alphabet, `bytes` what it stands for (the text
  /// itself if it has characters outside of the alphabet: then no word yields it).
  struct Token {
    int32_t id;
    std::string text;
    std::string bytes;
  };
  const std::vector<Token>& tokens() const { return tokens_; }
  std::optional<int32_t> id_of(std::string_view text) const;

 private:
  struct Merge {
    int32_t right, rank, token;  // tokens are indices into tokens_
  };

  void read_vocabulary(const Json& vocabulary, const std::string& where);
  void read_merges(const Json& merges, const std::string& where);
  int32_t index_of(std::string_view text, const std::string& where) const;
  const Merge* merge_of(int32_t left, int32_t right) const;
  void add_candidate(int32_t left, Scratch& scratch) const;

  std::vector<Token> tokens_;
  std::unordered_map<std::string_view, int32_t> by_text_;
  std::unordered_map<std::string_view, int32_t> by_bytes_;  // filled if ignore_merges_
  std::vector<int32_t> byte_tokens_;                        // 256; -1: the vocabulary lacks it
  // The merges of a left token stand together, sorted by the right one.
  std::vector<int32_t> merge_offsets_;
  std::vector<Merge> merges_;
  bool ignore_merges_ = false;  // a word that is a token is that token
};

}  // namespace hearth
