// Where the turns of a chat stand in its text: the rules of mask.h, one by one.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "data/chat/chat_template.h"
#include "data/chat/messages.h"

namespace hearth {

/// Renders the beginnings of one chat and compares them. All renderings together have a bounded
/// number of steps. What a template raises for a beginning only means that nothing is known by it.
class TurnFinder {
 public:
  TurnFinder(const ChatTemplate& chat_template, const Chat& chat, const std::string& where);

  /// The first `count` messages; null when the template raises.
  const std::string* text_of(size_t count, bool prompt);
  const RenderedChat& whole() const { return whole_; }

  /// Turn i of a text that begins with render(messages[:i+1]): from the end of the prompt before
  /// it, or from where the prompt and the text part.
  std::optional<TextSpan> by_prefix(size_t i);
  /// The same for all that follows the first `i` messages.
  std::optional<size_t> begin_by_prefix(size_t i, const std::string& text);
  /// What the template's loop wrote in the turn, less what agrees with the generation prompt.
  std::optional<TextSpan> by_piece(size_t i, const RenderedChat& of);
  /// The last message of messages[:i+1], from where the text changes with its content on.
  TextSpan by_difference(size_t i);

  /// Whether words of messages before `end` that the assistant did not write stand in these spans
  /// of the whole text. `unknown`: the text is another one when their words change.
  enum class Words { apart, inside, unknown };
  Words foreign_words(const std::vector<TextSpan>& spans, size_t end);

  /// By by_prefix: the text of the messages up to turn i is no beginning of the whole text.
  bool rewrites(size_t i);

 private:
  const ChatTemplate& template_;
  const Chat& chat_;
  const std::string& where_;
  int64_t steps_;
  RenderedChat whole_;
  std::map<std::pair<size_t, bool>, std::optional<std::string>> texts_;
};

}  // namespace hearth
