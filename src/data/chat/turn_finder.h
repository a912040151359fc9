// Where the turns of a chat stand in its text: the rules of mask.h, one by one.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "data/chat/chat_template.h"
#include "data/chat/messages.h"

namespace hearth {

/// Renders the beginnings of one chat and compares them. All renderings together have `steps` steps
/// of the template's evaluation. What a template raises for a beginning only means that nothing is
/// known by it.
class TurnFinder {
 public:
  TurnFinder(const ChatTemplate& chat_template, const Chat& chat, const std::string& where,
             int64_t steps);

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
  /// The last message of messages[:i+1], from where the text changes with its content on. No value
  /// where the template raises for such a beginning or for another content.
  std::optional<TextSpan> by_difference(size_t i);
  /// The last place of the whole text where the content of turn i stands, apart from what the other
  /// messages say; to the end of the text, if the turn is the last and nobody's words follow.
  std::optional<TextSpan> by_content(size_t i);

  /// Whether words of messages before `end` that the assistant did not write stand in these spans
  /// of the whole text. `unknown`: the text is another one when their words change.
  enum class Words { apart, inside, unknown };
  Words foreign_words(const std::vector<TextSpan>& spans, size_t end);

  /// No steps are left for more renderings: what is not known has this reason.
  bool exhausted() const { return steps_ < 0; }
  int64_t steps_left() const { return steps_; }

  /// By by_prefix: the text of the messages up to turn i is no beginning of the whole text.
  bool rewrites(size_t i);

 private:
  std::optional<std::string> try_render(std::span<const Json> messages);
  /// Where in the whole text the middles of the contents of these messages stand, in order; no
  /// value where that cannot be told.
  std::optional<std::vector<size_t>> middles_of(const std::vector<bool>& which);
  /// Where the contents of all messages but i stand, as far as they are found.
  std::vector<TextSpan> contents_but(size_t i);

  const ChatTemplate& template_;
  const Chat& chat_;
  const ChatValues values_;
  const std::string& where_;
  int64_t steps_;
  RenderedChat whole_;
  std::map<std::pair<size_t, bool>, std::optional<std::string>> texts_;
};

}  // namespace hearth
