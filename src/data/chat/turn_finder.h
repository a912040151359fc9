// Finds the turns of a chat in its text, by the rules of mask.h.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "data/chat/chat_template.h"
#include "data/chat/messages.h"

namespace hearth {

/// Renders prefixes of one chat and compares them. All renderings share a budget of `steps`
/// template steps. If the template raises for a prefix, the rules that need this prefix do not
/// apply.
class TurnFinder {
 public:
  TurnFinder(const ChatTemplate& chat_template, const Chat& chat, const std::string& where,
             int64_t steps);

  /// The text of the first `count` messages; null if the template raises.
  const std::string* text_of(size_t count, bool prompt);
  const RenderedChat& whole() const { return whole_; }

  /// Turn i, if the whole text begins with render(messages[:i+1]). It begins at the end of the
  /// prompt before it, or where prompt and text first differ.
  std::optional<TextSpan> by_prefix(size_t i);
  /// Where everything after the first `i` messages begins, by the same rule.
  std::optional<size_t> begin_by_prefix(size_t i, const std::string& text);
  /// The text that the template's loop wrote for the turn, without its common prefix with the
  /// generation prompt.
  std::optional<TextSpan> by_piece(size_t i, const RenderedChat& of);
  /// The last message of messages[:i+1]: from the first byte that changes with its content to the
  /// end. No value if the template raises for this prefix or for the changed content.
  std::optional<TextSpan> by_difference(size_t i);
  /// The last occurrence of turn i's content in the whole text that does not overlap the content of
  /// other messages. Extends to the end of the text if the turn is the last message and no other
  /// content follows.
  std::optional<TextSpan> by_content(size_t i);

  /// Whether these spans of the whole text contain content of other roles' messages before `end`.
  /// `unknown`: the rest of the text depends on that content.
  enum class Words { apart, inside, unknown };
  Words foreign_words(const std::vector<TextSpan>& spans, size_t end);

  /// Whether the step budget ran out, which explains missing results.
  bool exhausted() const { return steps_ < 0; }
  int64_t steps_left() const { return steps_; }

  /// Whether the text of the messages up to turn i is not a prefix of the whole text.
  bool rewrites(size_t i);

 private:
  std::optional<std::string> try_render(std::span<const Json> messages);
  /// Offsets in the whole text of the middle of each of these messages' contents, in order of the
  /// text. No value if they cannot be determined.
  std::optional<std::vector<size_t>> middles_of(const std::vector<bool>& which);
  /// The spans of the contents of all messages except i, as far as they are found.
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
