// Properties of characters come from utf8proc; upper case of one character by several (SpecialCasing
// of Unicode) stands in a table here.
#include "jinja/unicode.h"

#include <utf8proc.h>

#include <algorithm>
#include <utility>

#include "base/utf8.h"

namespace hearth::jinja {
namespace {

utf8proc_category_t category(uint32_t code) {
  return utf8proc_category(static_cast<utf8proc_int32_t>(code));
}

bool is_upper_code(uint32_t code) {
  return category(code) == UTF8PROC_CATEGORY_LU ||
         utf8proc_isupper(static_cast<utf8proc_int32_t>(code)) != 0;
}
bool is_lower_code(uint32_t code) {
  return category(code) == UTF8PROC_CATEGORY_LL ||
         utf8proc_islower(static_cast<utf8proc_int32_t>(code)) != 0;
}
bool is_title_code(uint32_t code) { return category(code) == UTF8PROC_CATEGORY_LT; }
bool is_cased(uint32_t code) {
  return is_upper_code(code) || is_lower_code(code) || is_title_code(code);
}
bool is_letter(uint32_t code) {
  const auto c = category(code);
  return c >= UTF8PROC_CATEGORY_LU && c <= UTF8PROC_CATEGORY_LO;
}
bool is_case_ignorable(uint32_t code) {
  const auto c = category(code);
  return c == UTF8PROC_CATEGORY_MN || c == UTF8PROC_CATEGORY_ME || c == UTF8PROC_CATEGORY_CF ||
         c == UTF8PROC_CATEGORY_LM || c == UTF8PROC_CATEGORY_SK || code == '\'' || code == '.' ||
         code == ':' || code == 0xb7 || code == 0x2019 || code == 0x2018 || code == 0x2024 ||
         code == 0x2027;
}

struct Special {
  uint32_t code;
  uint32_t upper[3];
  uint32_t title[3];
};

constexpr Special kSpecials[] = {
    {0xdf, {'S', 'S', 0}, {'S', 's', 0}},
    {0x149, {0x2bc, 'N', 0}, {0x2bc, 'N', 0}},
    {0x1f0, {'J', 0x30c, 0}, {'J', 0x30c, 0}},
    {0x390, {0x399, 0x308, 0x301}, {0x399, 0x308, 0x301}},
    {0x3b0, {0x3a5, 0x308, 0x301}, {0x3a5, 0x308, 0x301}},
    {0x587, {0x535, 0x552, 0}, {0x535, 0x582, 0}},
    {0x1e96, {'H', 0x331, 0}, {'H', 0x331, 0}},
    {0x1e97, {'T', 0x308, 0}, {'T', 0x308, 0}},
    {0x1e98, {'W', 0x30a, 0}, {'W', 0x30a, 0}},
    {0x1e99, {'Y', 0x30a, 0}, {'Y', 0x30a, 0}},
    {0x1e9a, {'A', 0x2be, 0}, {'A', 0x2be, 0}},
    {0xfb00, {'F', 'F', 0}, {'F', 'f', 0}},
    {0xfb01, {'F', 'I', 0}, {'F', 'i', 0}},
    {0xfb02, {'F', 'L', 0}, {'F', 'l', 0}},
    {0xfb03, {'F', 'F', 'I'}, {'F', 'f', 'i'}},
    {0xfb04, {'F', 'F', 'L'}, {'F', 'f', 'l'}},
    {0xfb05, {'S', 'T', 0}, {'S', 't', 0}},
    {0xfb06, {'S', 'T', 0}, {'S', 't', 0}},
};

const Special* special(uint32_t code) {
  for (const Special& each : kSpecials) {
    if (each.code == code) return &each;
  }
  return nullptr;
}

void add(std::vector<uint32_t>& to, const uint32_t (&codes)[3]) {
  for (const uint32_t code : codes) {
    if (code != 0) to.push_back(code);
  }
}

void add_upper(std::vector<uint32_t>& to, uint32_t code) {
  if (const Special* found = special(code)) return add(to, found->upper);
  to.push_back(static_cast<uint32_t>(utf8proc_toupper(static_cast<utf8proc_int32_t>(code))));
}

void add_title(std::vector<uint32_t>& to, uint32_t code) {
  if (const Special* found = special(code)) return add(to, found->title);
  to.push_back(static_cast<uint32_t>(utf8proc_totitle(static_cast<utf8proc_int32_t>(code))));
}

// A sigma at the end of a word: a cased letter before it and none behind it.
bool is_final_sigma(const std::vector<uint32_t>& codes, size_t i) {
  size_t before = i;
  while (before > 0 && is_case_ignorable(codes[before - 1])) --before;
  if (before == 0 || !is_cased(codes[before - 1])) return false;
  size_t behind = i + 1;
  while (behind < codes.size() && is_case_ignorable(codes[behind])) ++behind;
  return behind == codes.size() || !is_cased(codes[behind]);
}

void add_lower(std::vector<uint32_t>& to, const std::vector<uint32_t>& codes, size_t i) {
  const uint32_t code = codes[i];
  if (code == 0x130) {
    to.insert(to.end(), {'i', 0x307});
  } else if (code == 0x3a3) {
    to.push_back(is_final_sigma(codes, i) ? 0x3c2 : 0x3c3);
  } else {
    to.push_back(static_cast<uint32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(code))));
  }
}

template <class F>
std::string map_codes(std::string_view text, const F& append) {
  const std::vector<uint32_t> codes = codes_of(text);
  std::vector<uint32_t> mapped;
  mapped.reserve(codes.size());
  for (size_t i = 0; i < codes.size(); ++i) append(mapped, codes, i);
  return text_of(mapped);
}

using Codes = std::vector<uint32_t>;

template <class F>
bool all_codes(std::string_view text, const F& is) {
  const Codes codes = codes_of(text);
  return !codes.empty() && std::all_of(codes.begin(), codes.end(), is);
}

bool is_decimal(uint32_t code) { return category(code) == UTF8PROC_CATEGORY_ND; }
bool is_digit(uint32_t code) {
  return is_decimal(code) || code == 0xb2 || code == 0xb3 || code == 0xb9 || code == 0x2070 ||
         (code >= 0x2074 && code <= 0x2079) || (code >= 0x2080 && code <= 0x2089) ||
         (code >= 0x2460 && code <= 0x2468) || (code >= 0x2474 && code <= 0x247c) ||
         (code >= 0x2488 && code <= 0x2490) || (code >= 0x2776 && code <= 0x277e) ||
         (code >= 0x2780 && code <= 0x2788) || (code >= 0x278a && code <= 0x2792);
}
bool is_numeric(uint32_t code) {
  static constexpr uint32_t kHan[] = {0x4e00, 0x4e8c, 0x4e09, 0x56db, 0x4e94, 0x516d,
                                      0x4e03, 0x516b, 0x4e5d, 0x5341, 0x767e, 0x5343,
                                      0x4e07, 0x4ebf, 0x96f6, 0x5146, 0x842c, 0x5104};
  const auto c = category(code);
  return is_digit(code) || c == UTF8PROC_CATEGORY_NL || c == UTF8PROC_CATEGORY_NO ||
         std::find(std::begin(kHan), std::end(kHan), code) != std::end(kHan);
}

bool one_case(std::string_view text, bool upper) {
  bool cased = false;
  for (const uint32_t code : codes_of(text)) {
    if (is_title_code(code) || (upper ? is_lower_code(code) : is_upper_code(code))) return false;
    cased |= upper ? is_upper_code(code) : is_lower_code(code);
  }
  return cased;
}

bool is_title(std::string_view text) {
  bool cased = false;
  bool inside = false;  // the character before is cased
  for (const uint32_t code : codes_of(text)) {
    if (is_upper_code(code) || is_title_code(code)) {
      if (inside) return false;
      inside = cased = true;
    } else if (is_lower_code(code)) {
      if (!inside) return false;
      cased = true;
    } else {
      inside = false;
    }
  }
  return cased;
}

}  // namespace

bool is_space(uint32_t code) {
  return (code >= 0x9 && code <= 0xd) || (code >= 0x1c && code <= 0x20) || code == 0x85 ||
         code == 0xa0 || code == 0x1680 || (code >= 0x2000 && code <= 0x200a) || code == 0x2028 ||
         code == 0x2029 || code == 0x202f || code == 0x205f || code == 0x3000;
}

size_t leading_space(std::string_view text) {
  size_t at = 0;
  while (at < text.size()) {
    const Utf8Char c = decode_utf8(text.substr(at));
    if (c.length == 0 || !is_space(c.code)) break;
    at += c.length;
  }
  return at;
}

size_t trailing_space(std::string_view text) {
  size_t end = text.size();
  while (end > 0) {
    size_t begin = end - 1;
    while (begin > 0 && (text[begin] & 0xc0) == 0x80) --begin;
    const Utf8Char c = decode_utf8(text.substr(begin, end - begin));
    if (c.length == 0 || !is_space(c.code)) break;
    end = begin;
  }
  return text.size() - end;
}

std::string_view first_character(std::string_view text) {
  return text.substr(0, std::max<size_t>(1, decode_utf8(text).length));
}

bool append_code(std::string& text, uint32_t code) {
  if (code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff)) return false;
  utf8proc_uint8_t bytes[4];
  const auto length = utf8proc_encode_char(static_cast<utf8proc_int32_t>(code), bytes);
  text.append(reinterpret_cast<const char*>(bytes), static_cast<size_t>(length));
  return true;
}

std::vector<uint32_t> codes_of(std::string_view text) {
  std::vector<uint32_t> codes;
  codes.reserve(text.size());
  while (!text.empty()) {
    const Utf8Char c = decode_utf8(text);
    codes.push_back(c.length == 0 ? 0xfffd : c.code);
    text.remove_prefix(std::max<size_t>(1, c.length));
  }
  return codes;
}

std::string text_of(const std::vector<uint32_t>& codes) {
  std::string text;
  text.reserve(codes.size());
  for (const uint32_t code : codes) append_code(text, code);
  return text;
}

size_t count_codes(std::string_view text) {
  return static_cast<size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xc0) != 0x80; }));
}

size_t offset_of(std::string_view text, size_t character) {
  size_t at = 0;
  for (; at < text.size(); ++at) {
    if ((text[at] & 0xc0) != 0x80 && character-- == 0) break;
  }
  return at;
}

std::string to_upper(std::string_view text) {
  return map_codes(text, [](Codes& to, const Codes& codes, size_t i) { add_upper(to, codes[i]); });
}

std::string to_lower(std::string_view text) {
  return map_codes(text, [](Codes& to, const Codes& codes, size_t i) { add_lower(to, codes, i); });
}

std::string to_title(std::string_view text) {
  return map_codes(text, [](Codes& to, const Codes& codes, size_t i) {
    if (i > 0 && is_cased(codes[i - 1])) {
      add_lower(to, codes, i);
    } else {
      add_title(to, codes[i]);
    }
  });
}

std::string capitalize(std::string_view text) {
  return map_codes(text, [](Codes& to, const Codes& codes, size_t i) {
    if (i == 0) {
      add_title(to, codes[i]);
    } else {
      add_lower(to, codes, i);
    }
  });
}

std::string swap_case(std::string_view text) {
  return map_codes(text, [](Codes& to, const Codes& codes, size_t i) {
    if (is_upper_code(codes[i])) {
      add_lower(to, codes, i);
    } else if (is_lower_code(codes[i])) {
      add_upper(to, codes[i]);
    } else {
      to.push_back(codes[i]);
    }
  });
}

bool has_property(std::string_view text, std::string_view name) {
  if (name == "isalpha") return all_codes(text, is_letter);
  if (name == "isdecimal") return all_codes(text, is_decimal);
  if (name == "isdigit") return all_codes(text, is_digit);
  if (name == "isnumeric") return all_codes(text, is_numeric);
  if (name == "isspace") return all_codes(text, is_space);
  if (name == "isupper") return one_case(text, true);
  if (name == "islower") return one_case(text, false);
  if (name == "istitle") return is_title(text);
  if (name == "isascii") return text.empty() || all_codes(text, [](uint32_t c) { return c < 128; });
  return all_codes(text, [](uint32_t c) { return is_letter(c) || is_numeric(c); });  // isalnum
}

bool is_word(uint32_t code) { return code == '_' || is_letter(code) || is_numeric(code); }

bool is_printable(uint32_t code) {
  const auto c = category(code);
  return code == ' ' || (c >= UTF8PROC_CATEGORY_LU && c <= UTF8PROC_CATEGORY_SO);
}

}  // namespace hearth::jinja
