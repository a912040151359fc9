#include "data/chat/turn_finder.h"

#include <algorithm>

#include "base/error.h"
#include "base/utf8.h"
#include "data/json_fields.h"

namespace hearth {
namespace {

constexpr std::string_view kMark = "\xee\x83\xb1";  // a character for private use
constexpr const char* kBlanks = " \t\r\n";

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

std::string trimmed(const std::string& text) {
  const size_t first = text.find_first_not_of(kBlanks);
  if (first == std::string::npos) return "";
  return text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

// Where no test for a beginning or an end sees a mark.
size_t middle_of(const std::string& content) {
  size_t middle = content.size() / 2;
  while (middle > 0 && (content[middle] & 0xc0) == 0x80) --middle;
  return middle;
}

std::string marked(const std::string& content) {
  const size_t middle = middle_of(content);
  return content.substr(0, middle) + std::string(kMark) + content.substr(middle);
}

}  // namespace

TurnFinder::TurnFinder(const ChatTemplate& chat_template, const Chat& chat,
                       const std::string& where, int64_t steps)
    : template_(chat_template),
      chat_(chat),
      values_(chat.messages, chat.tools, where),
      where_(where),
      steps_(steps) {
  whole_ = template_.render(values_, values_.messages(), false, where, &steps_);
}

const std::string* TurnFinder::text_of(size_t count, bool prompt) {
  if (count == chat_.messages.size() && !prompt) return &whole_.text;
  const auto key = std::pair(count, prompt);
  auto found = texts_.find(key);
  if (found == texts_.end()) {
    // Turns are asked for in order: what is far behind is not asked for again.
    if (count < chat_.messages.size() && count > 1) {
      texts_.erase(texts_.begin(), texts_.lower_bound({count - 1, false}));
    }
    std::optional<std::string> text;
    try {
      text = template_.render(values_, count, prompt, where_, &steps_).text;
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

std::optional<TextSpan> TurnFinder::by_difference(size_t i) {
  const std::string* text = text_of(i + 1, false);
  if (text == nullptr) return std::nullopt;
  std::vector<Json> messages(chat_.messages.begin(),
                             chat_.messages.begin() + static_cast<ptrdiff_t>(i));
  const Json& content = member_or_null(chat_.messages[i], "content");
  const std::string own = content.is_string() ? content.as_string() : "";
  const size_t first = own.find_first_not_of(kBlanks);
  const char other = first != std::string::npos && own[first] == '0' ? '1' : '0';
  messages.push_back(JsonObject{{"role", "assistant"}, {"content", std::string(1, other)}});
  const auto changed = try_render(messages);
  if (!changed) return std::nullopt;
  return span_of(common(*text, *changed), text->size());
}

std::optional<TextSpan> TurnFinder::by_content(size_t i) {
  const Json& content = member_or_null(chat_.messages[i], "content");
  const std::string own = content.is_string() ? trimmed(content.as_string()) : "";
  if (own.empty()) return std::nullopt;
  const std::string& text = whole_.text;
  const std::vector<TextSpan> taken = contents_but(i);
  for (size_t at = text.rfind(own); at != std::string::npos;
       at = at == 0 ? std::string::npos : text.rfind(own, at - 1)) {
    const size_t end = at + own.size();
    const auto next = std::find_if(taken.begin(), taken.end(),
                                   [&](const TextSpan& words) { return words.end > at; });
    if (next != taken.end() && next->begin < end) continue;
    const bool last = next == taken.end() && i + 1 == chat_.messages.size();
    return span_of(at, last ? text.size() : end);
  }
  return std::nullopt;
}

std::vector<TextSpan> TurnFinder::contents_but(size_t i) {
  std::vector<bool> others(chat_.messages.size(), true);
  others[i] = false;
  const auto middles = middles_of(others);
  std::vector<TextSpan> spans;
  for (const size_t middle : middles.value_or(std::vector<size_t>())) {
    TextSpan span = span_of(middle, middle);
    for (const Json& message : chat_.messages) {  // whose it is, is not known
      const Json& content = member_or_null(message, "content");
      if (!content.is_string()) continue;
      const std::string words = trimmed(content.as_string());
      const size_t before = middle_of(content.as_string()) - content.as_string().find(words);
      if (before > middle || before > words.size()) continue;
      if (whole_.text.compare(middle - before, words.size(), words) != 0) continue;
      span = {std::min(span.begin, static_cast<uint32_t>(middle - before)),
              std::max(span.end, static_cast<uint32_t>(middle - before + words.size()))};
    }
    spans.push_back(span);
  }
  return spans;
}

std::optional<std::string> TurnFinder::try_render(std::span<const Json> messages) {
  try {
    return template_.render(messages, chat_.tools, false, where_, &steps_).text;
  } catch (const Error& error) {
    if (error.code() != ExitCode::input) throw;
    return std::nullopt;
  }
}

std::optional<std::vector<size_t>> TurnFinder::middles_of(const std::vector<bool>& which) {
  if (whole_.text.find(kMark) != std::string::npos) return std::nullopt;
  JsonArray messages = chat_.messages;
  for (size_t i = 0; i < messages.size(); ++i) {
    const Json& content = member_or_null(messages[i], "content");
    if (which[i] && content.is_string() && !content.as_string().empty()) {
      messages[i]["content"] = marked(content.as_string());
    }
  }
  const auto text = try_render(messages);
  if (!text) return std::nullopt;
  std::string plain;
  std::vector<size_t> middles;
  for (size_t from = 0;;) {
    const size_t mark = text->find(kMark, from);
    plain.append(*text, from, mark == std::string::npos ? mark : mark - from);
    if (mark == std::string::npos) break;
    middles.push_back(plain.size());
    from = mark + kMark.size();
  }
  if (plain != whole_.text) return std::nullopt;
  return middles;
}

TurnFinder::Words TurnFinder::foreign_words(const std::vector<TextSpan>& spans, size_t end) {
  std::vector<bool> others(chat_.messages.size());
  for (size_t i = 0; i < end; ++i) {
    others[i] = member_or_null(chat_.messages[i], "role").as_string() != "assistant";
  }
  const auto middles = middles_of(others);
  if (!middles) return Words::unknown;
  auto span = spans.begin();
  for (const size_t middle : *middles) {
    while (span != spans.end() && span->end <= middle) ++span;
    if (span != spans.end() && span->begin < middle) return Words::inside;
  }
  return Words::apart;
}

}  // namespace hearth
