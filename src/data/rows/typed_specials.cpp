#include "data/rows/typed_specials.h"

#include <algorithm>

#include "base/error_format.h"
#include "base/setting.h"

namespace hearth {
namespace {

bool has_text(const Json& value, const std::string& part) {
  if (value.is_string()) return value.as_string().find(part) != std::string::npos;
  if (value.is_array()) {
    return std::any_of(value.as_array().begin(), value.as_array().end(),
                       [&](const Json& each) { return has_text(each, part); });
  }
  if (!value.is_object()) return false;
  return std::any_of(value.as_object().begin(), value.as_object().end(), [&](const auto& each) {
    return each.first.find(part) != std::string::npos || has_text(each.second, part);
  });
}

// One of the private characters from U+100000 on.
std::string unused_character(const Chat& chat) {
  const Json all = JsonArray{Json(chat.messages), chat.tools};
  for (int i = 0; i < 64 * 64; ++i) {
    std::string character = "\xf4\x80";
    character += static_cast<char>(0x80 + i / 64);
    character += static_cast<char>(0x80 + i % 64);
    if (!has_text(all, character)) return character;
  }
  throw input_error("the chat uses 4096 private characters of Unicode; remove them or {}",
                    spelled(Setting::no_special_in_content));
}

}  // namespace

SpecialTokens::SpecialTokens(const Tokenizer& tokenizer) {
  for (int64_t id = 0; id < tokenizer.vocabulary_size(); ++id) {
    if (!tokenizer.is_special(static_cast<int32_t>(id))) continue;
    tokens_.emplace_back(*tokenizer.token(static_cast<int32_t>(id)));  // never empty
  }
  std::stable_sort(tokens_.begin(), tokens_.end(),
                   [](const auto& a, const auto& b) { return a.size() > b.size(); });
}

std::string_view SpecialTokens::at(std::string_view text, size_t at) const {
  for (const std::string& token : tokens_) {
    if (text.substr(at).starts_with(token)) return token;
  }
  return {};
}

TypedSpecials::TypedSpecials(const SpecialTokens& tokens, Chat& chat)
    : mark_(unused_character(chat)) {
  for (Json& message : chat.messages) hide(tokens, message);
}

std::string TypedSpecials::stand_in(size_t number) const {
  return mark_ + std::to_string(number) + mark_;
}

void TypedSpecials::hide(const SpecialTokens& tokens, Json& value) {
  if (value.is_array()) {
    for (Json& each : value.as_array()) hide(tokens, each);
  } else if (value.is_object()) {
    for (auto& [key, each] : value.as_object()) {
      if (key != "role") hide(tokens, each);
    }
  } else if (value.is_string()) {
    const std::string& text = value.as_string();
    std::string changed;
    size_t done = 0;
    for (size_t at = 0; at < text.size();) {
      const std::string_view token = tokens.at(text, at);
      if (token.empty()) {
        ++at;
        continue;
      }
      changed.append(text, done, at - done).append(stand_in(hidden_.size()));
      hidden_.emplace_back(token);
      done = at += token.size();
    }
    if (done > 0) value = changed.append(text, done);
  }
}

std::vector<TextSpan> TypedSpecials::restore(TrainedChat& chat) const {
  std::vector<TextSpan> specials;
  if (hidden_.empty()) return specials;
  const std::string& from = chat.text;
  std::string text;
  // Where the bounds of trained spans come to, in order; one inside a stand-in to its begin.
  std::vector<uint32_t*> bounds;
  for (TextSpan& span : chat.trained) {
    bounds.push_back(&span.begin);
    bounds.push_back(&span.end);
  }
  auto bound = bounds.begin();
  const auto move_bounds = [&](size_t old_begin, size_t old_end, size_t size) {
    for (; bound != bounds.end() && **bound < old_end; ++bound) {
      const size_t into = std::min<size_t>(**bound - old_begin, size);
      **bound = static_cast<uint32_t>(text.size() + into);
    }
  };
  size_t done = 0;
  while (done < from.size()) {
    const size_t begin = std::min(from.find(mark_, done), from.size());
    move_bounds(done, begin, begin - done);
    text.append(from, done, begin - done);
    if (begin == from.size()) break;
    const size_t digits = begin + mark_.size();
    const size_t close = std::min(from.find(mark_, digits), from.size());
    const size_t end = std::min(close + mark_.size(), from.size());
    size_t number = 0;
    for (size_t i = digits; i < close && number < hidden_.size(); ++i) {
      number = number * 10 + static_cast<size_t>(from[i] - '0');
    }
    move_bounds(begin, end, 0);
    const auto at = static_cast<uint32_t>(text.size());
    // A template that cuts texts may have cut this one: then nothing is left of it.
    if (number < hidden_.size() && close < from.size()) text += hidden_[number];
    if (text.size() > at) specials.push_back({at, static_cast<uint32_t>(text.size())});
    done = end;
  }
  move_bounds(from.size(), from.size() + 1, 0);
  chat.text = std::move(text);
  std::erase_if(chat.trained, [](const TextSpan& span) { return span.begin == span.end; });
  return specials;
}

}  // namespace hearth
