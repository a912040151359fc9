#include "data/chat/turn_finder.h"

#include <algorithm>

#include "base/error.h"
#include "base/utf8.h"
#include "data/json_fields.h"

namespace hearth {
namespace {

constexpr int64_t kSteps = 200'000'000;
constexpr std::string_view kMark = "\xee\x83\xb1";  // a character for private use

// Length of the common beginning, in whole characters.
size_t common(std::string_view a, std::string_view b) {
  size_t length = static_cast<size_t>(
      std::mismatch(a.begin(), a.begin() + static_cast<ptrdiff_t>(std::min(a.size(), b.size())),
                    b.begin())
          .first -
      a.begin());
  while (length > 0 && length < a.size() && (a[length] & 0xc0) == 0x80) --length;
  return length;
}

TextSpan span_of(size_t begin, size_t end) {
  return {static_cast<uint32_t>(begin), static_cast<uint32_t>(end)};
}

// The content with the mark in its middle, where no test for a beginning or an end sees it.
std::string marked(const std::string& content) {
  size_t middle = content.size() / 2;
  while (middle > 0 && (content[middle] & 0xc0) == 0x80) --middle;
  return content.substr(0, middle) + std::string(kMark) + content.substr(middle);
}

}  // namespace

TurnFinder::TurnFinder(const ChatTemplate& chat_template, const Chat& chat,
                       const std::string& where)
    : template_(chat_template), chat_(chat), where_(where), steps_(kSteps) {
  whole_ = template_.render(chat.messages, chat.tools, false, where, &steps_);
}

const std::string* TurnFinder::text_of(size_t count, bool prompt) {
  if (count == chat_.messages.size() && !prompt) return &whole_.text;
  const auto key = std::pair(count, prompt);
  auto found = texts_.find(key);
  if (found == texts_.end()) {
    std::optional<std::string> text;
    try {
      const std::span<const Json> messages(chat_.messages.data(), count);
      text = template_.render(messages, chat_.tools, prompt, where_, &steps_).text;
    } catch (const Error& error) {
      if (error.code() != ExitCode::input) throw;
    }
    found = texts_.emplace(key, std::move(text)).first;
  }
  return found->second ? &*found->second : nullptr;
}

std::optional<size_t> TurnFinder::begin_by_prefix(size_t i, const std::string& text) {
  const std::string* prompt = text_of(i, true);
  if (prompt == nullptr) return std::nullopt;
  if (text.starts_with(*prompt)) return prompt->size();
  const std::string* before = text_of(i, false);
  if (before == nullptr || !text.starts_with(*before) || !prompt->starts_with(*before)) {
    return std::nullopt;
  }
  return common(text, *prompt);
}

std::optional<TextSpan> TurnFinder::by_prefix(size_t i) {
  const std::string* with = text_of(i + 1, false);
  if (with == nullptr || !whole_.text.starts_with(*with)) return std::nullopt;
  const auto begin = begin_by_prefix(i, *with);
  if (!begin) return std::nullopt;
  return span_of(*begin, with->size());
}

bool TurnFinder::rewrites(size_t i) {
  const std::string* with = text_of(i + 1, false);
  return with != nullptr && !whole_.text.starts_with(*with);
}

std::optional<TextSpan> TurnFinder::by_piece(size_t i, const RenderedChat& of) {
  const TextSpan piece = of.turns[i];
  if (piece.end == piece.begin) return std::nullopt;
  std::string header;
  bool known = false;
  for (const size_t count : {i, chat_.messages.size()}) {
    const std::string* with = text_of(count, true);
    const std::string* without = text_of(count, false);
    if (known || with == nullptr || without == nullptr || !with->starts_with(*without)) continue;
    header = with->substr(without->size());
    known = true;
  }
  const std::string_view text =
      std::string_view(of.text).substr(piece.begin, piece.end - piece.begin);
  const size_t agree = common(text, header);
  if (!known || (agree == 0 && !header.empty())) return std::nullopt;
  return span_of(piece.begin + agree, piece.end);
}

TextSpan TurnFinder::by_difference(size_t i) {
  const std::string* text = text_of(i + 1, false);
  std::vector<Json> messages(chat_.messages.begin(),
                             chat_.messages.begin() + static_cast<ptrdiff_t>(i));
  const Json& content = member_or_null(chat_.messages[i], "content");
  const std::string own = content.is_string() ? content.as_string() : "";
  const size_t first = own.find_first_not_of(" \t\r\n");
  const char other = first != std::string::npos && own[first] == '0' ? '1' : '0';
  messages.push_back(JsonObject{{"role", "assistant"}, {"content", std::string(1, other)}});
  const RenderedChat changed = template_.render(messages, chat_.tools, false, where_, &steps_);
  if (text == nullptr) {  // raises: once more, for the message
    const std::span<const Json> given(chat_.messages.data(), i + 1);
    template_.render(given, chat_.tools, false, where_, &steps_);
    throw input_error(where_ + ": the template renders this chat at times only");
  }
  return span_of(common(*text, changed.text), text->size());
}

TurnFinder::Words TurnFinder::foreign_words(const std::vector<TextSpan>& spans, size_t end) {
  if (whole_.text.find(kMark) != std::string::npos) return Words::unknown;
  JsonArray messages = chat_.messages;
  for (size_t i = 0; i < end; ++i) {
    if (member_or_null(messages[i], "role").as_string() == "assistant") continue;
    const Json& content = member_or_null(messages[i], "content");
    if (content.is_string() && !content.as_string().empty()) {
      messages[i]["content"] = marked(content.as_string());
    }
  }
  std::string text;
  try {
    text = template_.render(messages, chat_.tools, false, where_, &steps_).text;
  } catch (const Error& error) {
    if (error.code() != ExitCode::input) throw;
    return Words::unknown;
  }
  std::string plain;
  bool inside = false;
  auto span = spans.begin();
  for (size_t from = 0; from <= text.size();) {
    const size_t mark = text.find(kMark, from);
    plain.append(text, from, mark == std::string::npos ? mark : mark - from);
    if (mark == std::string::npos) break;
    while (span != spans.end() && span->end <= plain.size()) ++span;
    inside |= span != spans.end() && span->begin < plain.size();
    from = mark + kMark.size();
  }
  if (plain != whole_.text) return Words::unknown;
  return inside ? Words::inside : Words::apart;
}

}  // namespace hearth
