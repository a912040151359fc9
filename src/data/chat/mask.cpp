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

}  // namespace

TrainedChat render_trained(const ChatTemplate& chat_template, const Chat& chat, TrainOn train_on,
                           const std::string& where, int64_t steps) {
  if (find_assistant(chat.messages) == chat.messages.size()) {
    throw input_error(where + ": messages: no assistant turn, so nothing would be trained");
  }
  if (train_on == TrainOn::automatic) {
    train_on = chat.prompt_messages > 0 ? TrainOn::completion : TrainOn::assistant;
  }
  if (train_on == TrainOn::all) {
    TrainedChat trained;
    trained.text = chat_template.render(chat.messages, chat.tools, false, where).text;
    add_span(trained.trained, {0, static_cast<uint32_t>(trained.text.size())});
    return trained;
  }
  TurnFinder finder(chat_template, chat, where, steps);
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
