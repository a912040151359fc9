#include "data/tokenizer/normalizers.h"

#include <algorithm>
#include <array>
#include <memory>

#include "base/utf8.h"
#include "data/json_fields.h"
#include "data/tokenizer/byte_alphabet.h"
#include "data/tokenizer/matcher.h"
#include "data/tokenizer/unicode_forms.h"

namespace hearth {
namespace {

uint32_t bytes_in(std::string_view text) { return static_cast<uint32_t>(text.size()); }

// Replaces each character by what `change(code, by)` appends to the empty `by`; false keeps it.
template <class F>
void map_characters(AlignedText& text, const F& change) {
  const std::string_view from = text.text();
  TextEdit edit = text.edit();
  std::string by;
  Utf8Char c;
  for (uint32_t at = 0; at < from.size(); at += static_cast<uint32_t>(c.length)) {
    c = decode_utf8(from.substr(at));
    by.clear();
    if (change(c.code, by)) edit.replace({at, at + static_cast<uint32_t>(c.length)}, by);
  }
  text.apply(std::move(edit));
}

void lowercase(AlignedText& text) {
  const std::string_view from = text.text();
  if (std::none_of(from.begin(), from.end(),
                   [](char c) { return c < 0 || (c >= 'A' && c <= 'Z'); })) {
    return;
  }
  map_characters(text, [](uint32_t code, std::string& by) {
    append_lower(code, by);
    return true;
  });
}

void strip(AlignedText& text, bool left, bool right) {
  const std::string_view from = text.text();
  uint32_t begin = 0, end = bytes_in(from);
  if (left) {
    for (Utf8Char c; begin < end; begin += static_cast<uint32_t>(c.length)) {
      c = decode_utf8(from.substr(begin));
      if (!is_space(c.code)) break;
    }
  }
  while (right && end > begin) {
    uint32_t last = end - 1;
    while ((static_cast<uint8_t>(from[last]) & 0xc0) == 0x80) --last;
    if (!is_space(decode_utf8(from.substr(last)).code)) break;
    end = last;
  }
  text.keep({begin, end});
}

void strip_accents(AlignedText& text) {
  map_characters(text, [](uint32_t code, std::string&) { return is_accent(code); });
}

// What the normalizer of Google's NMT drops, and what it takes for a space.
void nmt(AlignedText& text) {
  map_characters(text, [](uint32_t code, std::string& by) {
    const auto in = [&](uint32_t first, uint32_t last) { return code >= first && code <= last; };
    const bool dropped = in(0x01, 0x08) || code == 0x0b || in(0x0e, 0x1f) || code == 0x7f ||
                         code == 0x8f || code == 0x9f;
    const bool space = code == 0x09 || code == 0x0a || code == 0x0c || code == 0x0d ||
                       code == 0x1680 || in(0x200b, 0x200f) || code == 0x2028 || code == 0x2029 ||
                       code == 0x2581 || code == 0xfeff || code == 0xfffd;
    if (space) by = " ";
    return dropped || space;
  });
}

void prepend(AlignedText& text, const std::string& prefix) {
  const std::string_view from = text.text();
  if (from.empty()) return;
  const auto first = static_cast<uint32_t>(decode_utf8(from).length);
  TextEdit edit = text.edit();
  edit.replace({0, first}, prefix + std::string(from.substr(0, first)));
  text.apply(std::move(edit));
}

void replace(AlignedText& text, const Matcher& matcher, const std::string& content) {
  TextEdit edit = text.edit();
  matcher.for_each(text.text(), [&](TextSpan match) { edit.replace(match, content); });
  text.apply(std::move(edit));
}

void spell_bytes(AlignedText& text) {
  const std::string_view from = text.text();
  TextEdit edit = text.edit();
  for (uint32_t at = 0; at < from.size(); ++at) {
    edit.replace({at, at + 1}, alphabet_character(static_cast<uint8_t>(from[at])));
  }
  text.apply(std::move(edit));
}

}  // namespace

Normalizer::Normalizer(const Json& description, const std::string& source) {
  if (!description.is_null()) add(description, source + ": normalizer");
}

void Normalizer::add(const Json& description, const std::string& where) {
  if (steps_.size() >= kMaxComponents) refuse_components(where);
  if (!description.is_object()) refuse_value(where, description);
  const std::string& type = read_string(description, "type", where);
  const auto plain = [&](auto step) {
    allow_keys(description, where, {"type"});
    steps_.emplace_back(step);
  };
  constexpr std::array<std::string_view, 4> kForms = {"NFC", "NFD", "NFKC", "NFKD"};
  if (const auto form = std::find(kForms.begin(), kForms.end(), type); form != kForms.end()) {
    const auto which = static_cast<UnicodeForm>(form - kForms.begin());
    plain([which](AlignedText& text) { normalize(text, which); });
  } else if (type == "Lowercase") {
    plain(lowercase);
  } else if (type == "StripAccents") {
    plain(strip_accents);
  } else if (type == "Nmt") {
    plain(nmt);
  } else if (type == "ByteLevel") {
    plain(spell_bytes);
  } else if (type == "Strip") {
    allow_keys(description, where, {"type", "strip_left", "strip_right"});
    const bool left = required_bool(description, "strip_left", where);
    const bool right = required_bool(description, "strip_right", where);
    steps_.emplace_back([=](AlignedText& text) { strip(text, left, right); });
  } else if (type == "Prepend") {
    allow_keys(description, where, {"type", "prepend"});
    const std::string prefix = read_string(description, "prepend", where);
    steps_.emplace_back([=](AlignedText& text) { prepend(text, prefix); });
  } else if (type == "Replace") {
    allow_keys(description, where, {"type", "pattern", "content"});
    const std::string content = read_string(description, "content", where);
    const auto matcher =
        std::make_shared<const Matcher>(member(description, "pattern", where), where + ".pattern");
    steps_.emplace_back([=](AlignedText& text) { replace(text, *matcher, content); });
  } else if (type == "Sequence") {
    allow_keys(description, where, {"type", "normalizers"});
    const Json& list = member(description, "normalizers", where);
    if (!list.is_array()) refuse_value(where + ".normalizers", list);
    for (size_t i = 0; i < list.as_array().size(); ++i) {
      add(list.as_array()[i], where + ".normalizers[" + std::to_string(i) + "]");
    }
  } else {
    refuse_value(where + ".type", Json(type));
  }
}

}  // namespace hearth
