// Which part of a rendered chat is trained.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "data/chat/chat_template.h"
#include "data/chat/messages.h"
#include "data/tokenizer/tokenizer.h"

namespace hearth {

/// `--train-on`: the turns of the assistant; the last of them; what answers the prompt (without a
/// prompt part: the last turn); everything. automatic: what suits the kind of row (for a chat
/// without a prompt part the turns of the assistant, with one the completion).
enum class TrainOn : uint8_t { automatic, assistant, last, completion, all };

/// A chat as text, and the spans of it whose tokens are trained, in order, apart, none empty.
struct TrainedChat {
  std::string text;
  std::vector<TextSpan> trained;
  std::string note;  // what a user should know once, the same for all rows that have it; or empty
};

/// Of a chat's renderings together: seconds.
inline constexpr int64_t kMostSteps = 200'000'000;

/// The rule: where the template has {% generation %} tags, what they mark. Else the span of turn i
/// goes from the end of render(messages[:i], generation prompt) to the end of
/// render(messages[:i+1]), if that is how the whole text begins; where the prompt is not a prefix
/// (it opens a reasoning block), from where the two part, if render(messages[:i]) is one. Where the
/// template rewrites earlier turns, what its loop wrote for the turn in the whole text, less the
/// header (the generation prompt as far as it agrees), with a note.
///
/// Input error that starts with `where`: no turn of the assistant, a template that raises, and a
/// turn that cannot be told apart; then the message says that `--train-on last` works. (It refuses
/// one thing alone: words of others within the last turn, whose own words stand nowhere as given.)
TrainedChat render_trained(const ChatTemplate& chat_template, const Chat& chat, TrainOn train_on,
                           const std::string& where, int64_t steps = kMostSteps);

/// Whether the last trained token ends a turn: it is one of `ends`, or only white space follows one
/// that is. True without a trained token. Labels stand beside their ids.
bool ends_turn(std::span<const int32_t> ids, std::span<const int32_t> labels,
               std::span<const int32_t> ends, const Tokenizer& tokenizer);

}  // namespace hearth
