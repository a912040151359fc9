// Special tokens that somebody typed into a message (--no-special-in-content): kept apart from those
// that the template writes.
#pragma once

#include <string>
#include <vector>

#include "data/chat/mask.h"
#include "data/chat/messages.h"
#include "data/tokenizer/tokenizer.h"

namespace hearth {

/// What special tokens a tokenizer has. Immutable: threads may share it.
class SpecialTokens {
 public:
  explicit SpecialTokens(const Tokenizer& tokenizer);
  /// The special token that starts at `at`, the longest; empty when none does.
  std::string_view at(std::string_view text, size_t at) const;

 private:
  std::vector<std::string> tokens_;  // the longest first
};

/// Takes them out of a chat before it is rendered, and puts them back behind it, so that it is known
/// where in the text they stand: where the template wrote the stand-in, nowhere else.
class TypedSpecials {
 public:
  /// Puts a stand-in for each special token in the texts of the messages (but their roles).
  TypedSpecials(const SpecialTokens& tokens, Chat& chat);

  /// Puts the tokens back into the text, moves the trained spans along, and returns where the tokens
  /// stand, in order.
  std::vector<TextSpan> restore(TrainedChat& chat) const;

 private:
  void hide(const SpecialTokens& tokens, Json& value);
  std::string stand_in(size_t number) const;

  std::string mark_;                 // a private character that the chat does not have
  std::vector<std::string> hidden_;  // by number
};

}  // namespace hearth
