#include "data/chat/mask.h"

#include <algorithm>

#include "base/error_format.h"
#include "base/setting.h"
#include "data/chat/turn_finder.h"
#include "data/json_fields.h"

namespace hearth {
namespace {

using Spans = std::vector<TextSpan>;
using Words = TurnFinder::Words;

constexpr const char* kRewrites =
    "the chat template rewrites earlier turns (for example, it drops old reasoning): they are "
    "trained "
    "as they appear in the final text";

constexpr const char* kOnePlace =
    "the chat template mixes the last assistant turn with text of other turns: only the last "
    "occurrence of its own text is trained";

/// The last turn changes if others follow it.
std::string cut_note() {
  return "the chat template rewrites the last assistant turn if others follow it: with " +
         spelled(Setting::train_on, "last") + " those others are left out";
}

[[noreturn]] void cannot_tell(const TurnFinder& finder, const std::string& where, size_t message,
                              const char* why) {
  throw input_error(
      "{}: messages[{}]: {}, so the trained tokens are unclear; {} works", where, message,
      finder.exhausted() ? "the chat template takes too many steps for its turns" : why,
      spelled(Setting::train_on, "last"));
}

void add_span(Spans& spans, TextSpan span) {
  if (span.end <= span.begin) return;
  if (!spans.empty() && span.begin <= spans.back().end) {
    spans.back().end = std::max(spans.back().end, span.end);
  } else {
    spans.push_back(span);
  }
}

// Blocks within blocks are one.
Spans joined(Spans spans) {
  std::sort(spans.begin(), spans.end(),
            [](const TextSpan& a, const TextSpan& b) { return a.begin < b.begin; });
  Spans apart;
  for (const TextSpan& span : spans) add_span(apart, span);
  return apart;
}

// The parts of blocks that lie in a span.
Spans within(const Spans& blocks, const TextSpan& whole) {
  Spans parts;
  for (const TextSpan& block : joined(blocks)) {
    add_span(parts, {std::max(block.begin, whole.begin), std::min(block.end, whole.end)});
  }
  return parts;
}

size_t last_assistant(const Chat& chat) {
  size_t last = chat.messages.size();
  for (size_t i = find_assistant(chat.messages); i < chat.messages.size();
       i = find_assistant(chat.messages, i + 1)) {
    last = i;
  }
  return last;
}

TrainedChat train_turns(TurnFinder& finder, const Chat& chat, const std::string& where) {
  TrainedChat trained;
  bool by_piece = false;
  size_t last_by_piece = 0;
  for (size_t i = find_assistant(chat.messages); i < chat.messages.size();
       i = find_assistant(chat.messages, i + 1)) {
    std::optional<TextSpan> span = finder.by_prefix(i);
    if (!span) {
      span = finder.by_piece(i, finder.whole());
      by_piece = true;
      last_by_piece = i;
      if (finder.rewrites(i)) trained.note = kRewrites;
    }
    if (!span) cannot_tell(finder, where, i, "the chat template rewrites earlier turns");
    if (!trained.trained.empty() && span->begin < trained.trained.back().end) {
      cannot_tell(finder, where, i, "the chat template mixes turns");
    }
    add_span(trained.trained, *span);
  }
  const Words words = finder.foreign_words(trained.trained, chat.messages.size());
  if (words == Words::inside || (words == Words::unknown && by_piece)) {
    cannot_tell(finder, where, last_by_piece,
                "the chat template writes text of other turns into assistant turns");
  }
  trained.text = finder.whole().text;
  return trained;
}

// The chat up to its last turn of the assistant; what follows stays where that changes nothing.
TrainedChat train_last(TurnFinder& finder, const Chat& chat, const ChatTemplate& chat_template,
                       const std::string& where) {
  const size_t i = last_assistant(chat);
  TrainedChat trained;
  if (finder.rewrites(i)) {
    Chat shorter = chat;
    shorter.messages.resize(i + 1);
    TurnFinder of_shorter(chat_template, shorter, where, finder.steps_left());
    trained = train_last(of_shorter, shorter, chat_template, where);
    trained.note = cut_note();
    return trained;
  }
  const auto allowed = [&](const std::optional<TextSpan>& span) {
    return span && finder.foreign_words({*span}, chat.messages.size()) == Words::apart;
  };
  std::optional<TextSpan> span = finder.by_prefix(i);
  if (!allowed(span)) span = finder.by_piece(i, finder.whole());
  if (!allowed(span)) {
    span = finder.by_difference(i);
    if (!span || finder.foreign_words({*span}, chat.messages.size()) == Words::inside) {
      span = finder.by_content(i);
      trained.note = kOnePlace;
    }
  }
  if (!span) {
    throw input_error(
        "{}: messages[{}]: the chat template changes the text of this turn and mixes it with text "
        "of "
        "other turns, so the trained tokens are unclear; use another template",
        where, i);
  }
  add_span(trained.trained, *span);
  trained.text = finder.whole().text;
  return trained;
}

// All behind a prompt; of templates with generation tags what they enclose there.
TrainedChat train_completion(TurnFinder& finder, const Chat& chat,
                             const ChatTemplate& chat_template, const std::string& where) {
  const size_t first = chat.prompt_messages;
  const RenderedChat& whole = finder.whole();
  std::optional<size_t> begin = finder.begin_by_prefix(first, whole.text);
  TrainedChat trained;
  if (!begin) {
    const auto piece = finder.by_piece(first, whole);
    if (piece) begin = piece->begin;
    trained.note = kRewrites;
  }
  if (!begin) cannot_tell(finder, where, first, "the chat template rewrites the prompt");
  add_span(trained.trained,
           {static_cast<uint32_t>(*begin), static_cast<uint32_t>(whole.text.size())});
  if (finder.foreign_words(trained.trained, first) == Words::inside) {
    cannot_tell(finder, where, first, "the chat template writes the prompt after the completion");
  }
  if (chat_template.marks_generation(chat.tools) && !whole.generated_hidden) {
    trained.trained = within(whole.generated, trained.trained[0]);
  }
  trained.text = whole.text;
  return trained;
}

// Generation tags: all blocks, or those of the last turn.
TrainedChat train_tagged(TurnFinder& finder, const Chat& chat, const ChatTemplate& chat_template,
                         bool last, const std::string& where) {
  TrainedChat trained;
  const RenderedChat& whole = finder.whole();
  if (!last) {
    if (whole.generated_hidden) {
      cannot_tell(finder, where, find_assistant(chat.messages),
                  "the template has generation tags in a macro or a variable");
    }
    trained.text = whole.text;
    trained.trained = joined(whole.generated);
    return trained;
  }
  trained = train_last(finder, chat, chat_template, where);
  if (whole.generated_hidden || trained.text != whole.text || trained.trained.empty()) {
    return trained;
  }
  const TextSpan turn = trained.trained[0];
  trained.trained.clear();
  for (const TextSpan& span : joined(whole.generated)) {
    if (span.end > turn.begin && span.begin < turn.end) add_span(trained.trained, span);
  }
  return trained;
}

/// Where the message is in the whole text, with what the template writes around it.
std::optional<TextSpan> message_span(TurnFinder& finder, const Chat& chat, size_t i) {
  const std::string& whole = finder.whole().text;
  const std::string *before = finder.text_of(i, false), *with = finder.text_of(i + 1, false);
  const bool is_prefix = with != nullptr && whole.starts_with(*with);
  if (is_prefix && before != nullptr && with->starts_with(*before)) {
    return TextSpan{static_cast<uint32_t>(before->size()), static_cast<uint32_t>(with->size())};
  }
  if (is_prefix && i == 0) return TextSpan{0, static_cast<uint32_t>(with->size())};
  if (find_assistant(chat.messages, i) == i) {
    if (const auto turn = finder.by_prefix(i)) return turn;
  }
  const TextSpan piece = finder.whole().turns[i];
  return piece.end > piece.begin ? std::optional(piece) : std::nullopt;
}

/// The parts of the spans outside of a gap.
Spans without(const Spans& spans, const TextSpan& gap) {
  Spans rest;
  for (const TextSpan& span : spans) {
    if (span.end <= gap.begin || span.begin >= gap.end) {
      rest.push_back(span);
      continue;
    }
    if (span.begin < gap.begin) rest.push_back({span.begin, gap.begin});
    if (gap.end < span.end) rest.push_back({gap.end, span.end});
  }
  return rest;
}

bool is_untrained(const Chat& chat, size_t i) {
  return i < chat.untrained.size() && chat.untrained[i];
}

/// Takes messages that must not be trained out of the trained spans. `turns_only`: no message but
/// the assistant's has trained text.
void take_untrained_out(TurnFinder& finder, const Chat& chat, bool turns_only,
                        const std::string& where, TrainedChat& trained) {
  for (size_t i = 0; i < chat.messages.size(); ++i) {
    if (!is_untrained(chat, i)) continue;
    if (turns_only && find_assistant(chat.messages, i) != i) continue;
    const std::optional<TextSpan> span = message_span(finder, chat, i);
    if (!span) cannot_tell(finder, where, i, "the chat template hides where this turn is");
    trained.trained = without(trained.trained, *span);
  }
}

/// Input error if every turn of the assistant that would be trained says that it is not.
void require_a_trained_turn(const Chat& chat, bool last_only, const std::string& where) {
  for (size_t i = last_only ? last_assistant(chat) : find_assistant(chat.messages);
       i < chat.messages.size(); i = find_assistant(chat.messages, i + 1)) {
    if (!is_untrained(chat, i)) return;
  }
  throw input_error(where + ": messages: no turn would be trained: " +
                    (last_only ? "the last turn" : "every turn") +
                    " of the assistant has \"train\": false or \"weight\": 0");
}

TrainedChat render_turns(TurnFinder& finder, const ChatTemplate& chat_template, const Chat& chat,
                         TrainOn train_on, const std::string& where) {
  if (train_on == TrainOn::completion) {
    const size_t last = last_assistant(chat);
    const bool last_alone = chat.prompt_messages == last && last + 1 == chat.messages.size();
    if (chat.prompt_messages > 0 && !last_alone) {
      return train_completion(finder, chat, chat_template, where);
    }
    train_on = TrainOn::last;
  }
  if (chat_template.marks_generation(chat.tools)) {
    return train_tagged(finder, chat, chat_template, train_on == TrainOn::last, where);
  }
  return train_on == TrainOn::last ? train_last(finder, chat, chat_template, where)
                                   : train_turns(finder, chat, where);
}

/// The same if some messages must not be trained.
TrainedChat render_masked(TurnFinder& finder, const ChatTemplate& chat_template, const Chat& chat,
                          TrainOn train_on, const std::string& where) {
  const bool last =
      train_on == TrainOn::last || (train_on == TrainOn::completion && chat.prompt_messages == 0);
  require_a_trained_turn(chat, last, where);
  if (train_on == TrainOn::all) {
    TrainedChat trained;
    trained.text = finder.whole().text;
    add_span(trained.trained, {0, static_cast<uint32_t>(trained.text.size())});
    take_untrained_out(finder, chat, false, where, trained);
    return trained;
  }
  TrainedChat trained = render_turns(finder, chat_template, chat, train_on, where);
  // Of the last turn alone, nothing is taken out: it may be the last of a shorter chat.
  if (last) return trained;
  take_untrained_out(finder, chat, train_on == TrainOn::assistant, where, trained);
  return trained;
}

}  // namespace

TrainedChat render_trained(const ChatTemplate& chat_template, const Chat& chat, TrainOn train_on,
                           const std::string& where, int64_t steps) {
  if (find_assistant(chat.messages) == chat.messages.size()) {
    throw input_error(where + ": messages: no assistant turn, so nothing would be trained");
  }
  if (train_on == TrainOn::automatic) {
    train_on = chat.prompt_messages > 0 ? TrainOn::completion : TrainOn::assistant;
  }
  const bool masks =
      std::find(chat.untrained.begin(), chat.untrained.end(), true) != chat.untrained.end();
  if (train_on == TrainOn::all && !masks) {
    TrainedChat trained;
    trained.text = chat_template.render(chat.messages, chat.tools, false, where).text;
    add_span(trained.trained, {0, static_cast<uint32_t>(trained.text.size())});
    return trained;
  }
  TurnFinder finder(chat_template, chat, where, steps);
  if (masks) return render_masked(finder, chat_template, chat, train_on, where);
  return render_turns(finder, chat_template, chat, train_on, where);
}

bool ends_turn(std::span<const int32_t> ids, std::span<const int32_t> labels,
               std::span<const int32_t> ends, const Tokenizer& tokenizer) {
  size_t i = labels.size();
  while (i > 0 && labels[i - 1] < 0) --i;
  if (i == 0) return true;
  for (; i > 0; --i) {
    if (std::find(ends.begin(), ends.end(), ids[i - 1]) != ends.end()) return true;
    const std::string text = tokenizer.decode(ids.subspan(i - 1, 1));
    if (text.find_first_not_of(" \t\r\n") != std::string::npos) return false;
  }
  return false;
}

}  // namespace hearth
