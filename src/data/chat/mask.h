// Chooses which parts of a rendered chat are trained.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "data/chat/chat_template.h"
#include "data/chat/messages.h"
#include "data/tokenizer/tokenizer.h"

namespace hearth {

/// `--train-on`:
/// assistant: all turns of the assistant.
/// last: the last of these turns.
/// completion: everything after the prompt, or the last turn if the row has no prompt part.
/// all: everything.
/// automatic: completion if the row has a prompt part, else assistant.
enum class TrainOn : uint8_t { automatic, assistant, last, completion, all };

/// A chat as text, and the spans whose tokens are trained: in order, disjoint, not empty.
struct TrainedChat {
  std::string text;
  std::vector<TextSpan> trained;
  std::string note;  // for the user, shown once for all rows with the same note; may be empty
};

/// Limit on the template steps of all renderings of one chat; takes seconds.
inline constexpr int64_t kMostSteps = 200'000'000;

/// The first rule that applies gives the span of turn i:
/// 1. {% generation %} tags: the text that they mark.
/// 2. If render(messages[:i+1]) is a prefix of the whole text: from the end of render(messages[:i],
/// generation prompt) to the end of that prefix. If the prompt is not a prefix (it may open a
/// reasoning block) but render(messages[:i]) is: from the first difference.
/// 3. If the template rewrites earlier turns: the text that its loop wrote for the turn, without
/// the header that agrees with the generation prompt. Adds a note.
///
/// Then messages that must not be trained (Chat::untrained) are taken out, whatever `train_on` is.
///
/// Input error that starts with `where`: no turn of the assistant, a template that raises, or a
/// turn whose span is unclear. In the last case the message proposes `--train-on last`. That mode
/// fails only if the last turn contains text of other turns and its own text is not found.
TrainedChat render_trained(const ChatTemplate& chat_template, const Chat& chat, TrainOn train_on,
                           const std::string& where, int64_t steps = kMostSteps);

/// Whether the last trained token is one of `ends`, or white space after one of `ends`. True if no
/// token is trained. Labels are not shifted: labels[i] belongs to ids[i].
bool ends_turn(std::span<const int32_t> ids, std::span<const int32_t> labels,
               std::span<const int32_t> ends, const Tokenizer& tokenizer);

}  // namespace hearth
