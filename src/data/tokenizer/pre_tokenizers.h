// The pre-tokenizer of tokenizer.json: splits a text into words.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "data/tokenizer/aligned_text.h"
#include "data/tokenizer/matcher.h"

namespace hearth {

/// A text and its words, in order and disjoint. Text between the words is dropped.
struct Words {
  AlignedText text;
  std::vector<TextSpan> spans;
  /// Whether a word at this byte of the original text begins the document.
  std::function<bool(uint32_t begin)> begins_document;

  /// One word: all of `from`, which is not empty. `room`, if given, bounds the edits of the text.
  explicit Words(std::string_view from, TextRoom* room = nullptr);
  /// Calls `rewrite(word, begin, edit)` for each word, which begins at `begin`; it may edit the
  /// word.
  void edit(const std::function<void(std::string_view, uint32_t, TextEdit&)>& rewrite);
  void split(const SplitRule& rule);
};

/// Supports Split, ByteLevel, Metaspace, Digits, Punctuation, Whitespace, WhitespaceSplit,
/// BertPreTokenizer, CharDelimiterSplit, and Sequences of them; null leaves one word. Immutable:
/// threads may share it.
class PreTokenizer {
 public:
  /// Reads the value of `pre_tokenizer`; `source` names the file in messages. Input error for an
  /// unknown component or key.
  PreTokenizer(const Json& description, const std::string& source);

  /// If the last component is ByteLevel, leaves its words as raw bytes; with `spell`, writes them
  /// in the byte-level alphabet.
  void apply(Words& words, bool spell) const;
  bool gives_bytes() const { return gives_bytes_; }

 private:
  using Step = std::function<void(Words&)>;
  void add(const Json& description, const std::string& where);
  void add_split(Matcher matcher, SplitBehavior behavior, bool invert = false);
  void add_byte_level(const Json& description, const std::string& where);
  void add_metaspace(const Json& description, const std::string& where);

  std::vector<Step> steps_;
  bool gives_bytes_ = false;
};

}  // namespace hearth
