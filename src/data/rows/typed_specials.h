// --no-special-in-content: tells special tokens typed into a message from the template's own.
#pragma once

#include <string>
#include <vector>

#include "data/chat/mask.h"
#include "data/chat/messages.h"
#include "data/tokenizer/tokenizer.h"

namespace hearth {

/// The special tokens of a tokenizer. Immutable: threads may share it.
class SpecialTokens {
 public:
  explicit SpecialTokens(const Tokenizer& tokenizer);
  /// The longest special token that starts at `at`; empty if there is none.
  std::string_view at(std::string_view text, size_t at) const;

 private:
  std::vector<std::string> tokens_;  // longest first
};

/// Replaces typed special tokens by placeholders before a chat is rendered, and restores them in
/// the rendered text. The positions of the placeholders are the positions of the typed tokens.
class TypedSpecials {
 public:
  /// Replaces each special token in the texts of the messages, except in roles.
  TypedSpecials(const SpecialTokens& tokens, Chat& chat);

  /// Restores the tokens, moves the trained spans accordingly, and returns the spans of the tokens,
  /// in order.
  std::vector<TextSpan> restore(TrainedChat& chat) const;

 private:
  void hide(const SpecialTokens& tokens, Json& value);
  std::string stand_in(size_t number) const;

  std::string mark_;                 // a private-use character that the chat does not contain
  std::vector<std::string> hidden_;  // by number
};

}  // namespace hearth
