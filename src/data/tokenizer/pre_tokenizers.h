// The pre-tokenizer of tokenizer.json: cutting a text into words.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "data/tokenizer/aligned_text.h"
#include "data/tokenizer/matcher.h"

namespace hearth {

/// A text and the words in it, in order and apart; what lies between them was removed.
struct Words {
  AlignedText text;
  std::vector<TextSpan> spans;
  /// Whether the word that begins at a byte of the text as it was given begins the whole document.
  std::function<bool(uint32_t begin)> begins_document;

  /// `room` bounds the edits of the text where given.
  explicit Words(std::string_view from, TextRoom* room = nullptr);
  /// Replaces the text: `rewrite(word, begin, edit)` may edit each word, which begins at `begin`.
  void edit(const std::function<void(std::string_view, uint32_t, TextEdit&)>& rewrite);
  void split(const SplitRule& rule);
};

/// Split, ByteLevel, Metaspace, Digits, Punctuation, Whitespace, WhitespaceSplit, BertPreTokenizer,
/// CharDelimiterSplit, and Sequences of them, each on the words of the one before; null leaves one
/// word. Immutable: threads may share it.
class PreTokenizer {
 public:
  /// From the value of `pre_tokenizer`; `source` names the file in messages. Input error for a
  /// component or a key that is not known.
  PreTokenizer(const Json& description, const std::string& source);

  /// Where the last component is ByteLevel its words are left as bytes; `spell` writes them in the
  /// byte-level alphabet instead.
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
