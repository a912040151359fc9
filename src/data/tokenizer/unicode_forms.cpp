#include "data/tokenizer/unicode_forms.h"

#include <utf8proc.h>

#include <algorithm>
#include <array>

#include "base/error.h"
#include "base/utf8.h"
#include "data/tokenizer/library_tables.h"

namespace hearth {
namespace {

constexpr uint32_t kFirstMark = 0x300;          // nothing below is reordered or composed onto
constexpr unsigned char kFirstMarkLead = 0xcc;  // its first byte in UTF-8
constexpr uint16_t kNoMapping = UINT16_MAX;

bool in(uint32_t code, uint32_t first, uint32_t last) { return code >= first && code <= last; }

bool composes(UnicodeForm form) { return form == UnicodeForm::nfc || form == UnicodeForm::nfkc; }
bool compatible(UnicodeForm form) { return form == UnicodeForm::nfkc || form == UnicodeForm::nfkd; }

const utf8proc_property_t& property(uint32_t code) {
  return *utf8proc_get_property(static_cast<utf8proc_int32_t>(code));
}

bool is_mark(uint32_t code) {
  const auto category = property(code).category;
  return category == UTF8PROC_CATEGORY_MN || category == UTF8PROC_CATEGORY_MC ||
         category == UTF8PROC_CATEGORY_ME;
}

int combining_class(utf8proc_int32_t code) { return utf8proc_get_property(code)->combining_class; }

void append_decomposed(uint32_t code, UnicodeForm form, std::vector<utf8proc_int32_t>& codes) {
  if (form != UnicodeForm::nfc && decomposition_unknown_to_library(code, compatible(form))) {
    return codes.push_back(static_cast<utf8proc_int32_t>(code));
  }
  constexpr size_t kLongest = 32;  // U+FDFA has 18
  const auto options = static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_DECOMPOSE |
                                                      (compatible(form) ? UTF8PROC_COMPAT : 0));
  std::array<utf8proc_int32_t, kLongest> parts{};
  int boundary = 0;
  const auto count = utf8proc_decompose_char(static_cast<utf8proc_int32_t>(code), parts.data(),
                                             parts.size(), options, &boundary);
  HEARTH_CHECK(count > 0 && count <= static_cast<utf8proc_ssize_t>(parts.size()),
               "a decomposition");
  codes.insert(codes.end(), parts.begin(), parts.begin() + count);
}

// Whether a character never changes what stands before it: normalization can be done apart on both
// sides of the place before it. Marks may reorder or compose; of the letters, conjoining jamo and
// Kirat Rai vowels compose. (U+11A7, beside the trailing jamo, does not; the library of Unicode 14
// would swallow it, but never sees it here.)
bool starts_cluster(uint32_t code) {
  if (code < kFirstMark) return true;
  const bool jamo = in(code, 0x1161, 0x1175) || in(code, 0x11a8, 0x11c2);
  if (jamo || in(code, 0x16d40, 0x16d7f)) return false;
  return property(code).combining_class == 0 && !is_mark(code);
}

// The same for a form whose decomposition may begin with a mark (U+FF9E).
bool starts_cluster(uint32_t code, UnicodeForm form) {
  if (!starts_cluster(code)) return false;
  if (!compatible(form) || property(code).decomp_seqindex == kNoMapping) return true;
  std::vector<utf8proc_int32_t> codes;
  append_decomposed(code, form, codes);
  return starts_cluster(static_cast<uint32_t>(codes[0]));
}

// Whether a character that stands alone in its cluster is as it shall be.
bool is_normal_alone(uint32_t code, UnicodeForm form) {
  if (form == UnicodeForm::nfc && code < kFirstMark) return true;
  return property(code).decomp_seqindex == kNoMapping && !in(code, 0xac00, 0xd7a3);
}

// Decomposes each character, puts runs of marks in canonical order, composes. The library's own
// ordering is quadratic in the length of a run, hence the sort here.
std::string normalize_cluster(std::string_view cluster, UnicodeForm form) {
  std::vector<utf8proc_int32_t> codes;
  while (!cluster.empty()) {
    const Utf8Char c = decode_utf8(cluster);
    cluster.remove_prefix(c.length);
    append_decomposed(c.code, form, codes);
  }
  for (auto begin = codes.begin(); begin != codes.end();) {
    const auto starter = [](utf8proc_int32_t code) { return combining_class(code) == 0; };
    begin = std::find_if_not(begin, codes.end(), starter);
    const auto end = std::find_if(begin, codes.end(), starter);
    std::stable_sort(begin, end, [](utf8proc_int32_t a, utf8proc_int32_t b) {
      return combining_class(a) < combining_class(b);
    });
    begin = end;
  }
  auto count = static_cast<utf8proc_ssize_t>(codes.size());
  if (composes(form)) {
    constexpr auto kCompose = static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE);
    count = utf8proc_normalize_utf32(codes.data(), count, kCompose);
    HEARTH_CHECK(count >= 0, "composition");
  }
  std::string text;
  for (utf8proc_ssize_t i = 0; i < count; ++i) append_utf8(static_cast<uint32_t>(codes[i]), text);
  return text;
}

}  // namespace

void normalize(AlignedText& text, UnicodeForm form) {
  const std::string_view from = text.text();
  const unsigned char changed = form == UnicodeForm::nfc ? kFirstMarkLead : 0x80;
  if (std::all_of(from.begin(), from.end(),
                  [&](char c) { return static_cast<unsigned char>(c) < changed; })) {
    return;
  }
  TextEdit edit = text.edit();
  size_t begin = 0;
  while (begin < from.size()) {
    const Utf8Char first = decode_utf8(from.substr(begin));
    HEARTH_CHECK(first.length > 0, "valid UTF-8");
    size_t end = begin + first.length;
    for (Utf8Char c; end < from.size(); end += c.length) {
      c = decode_utf8(from.substr(end));
      HEARTH_CHECK(c.length > 0, "valid UTF-8");
      if (starts_cluster(c.code, form)) break;
    }
    if (end > begin + first.length || !is_normal_alone(first.code, form)) {
      edit.replace({static_cast<uint32_t>(begin), static_cast<uint32_t>(end)},
                   normalize_cluster(from.substr(begin, end - begin), form));
    }
    begin = end;
  }
  text.apply(std::move(edit));
}

bool is_space(uint32_t code) {
  return in(code, 0x09, 0x0d) || code == 0x20 || code == 0x85 || code == 0xa0 || code == 0x1680 ||
         in(code, 0x2000, 0x200a) || code == 0x2028 || code == 0x2029 || code == 0x202f ||
         code == 0x205f || code == 0x3000;
}

bool is_accent(uint32_t code) {
  constexpr uint32_t kVedicSigns = 0x1cf2;  // two that were marks before Unicode 12
  return (is_mark(code) && !mark_unknown_to_library(code)) ||
         in(code, kVedicSigns, kVedicSigns + 1);
}

bool is_numeric(uint32_t code) {
  const auto category = property(code).category;
  return category == UTF8PROC_CATEGORY_ND || category == UTF8PROC_CATEGORY_NL ||
         category == UTF8PROC_CATEGORY_NO;
}

bool is_punctuation(uint32_t code) {
  if (code < 0x80) {
    return in(code, '!', '/') || in(code, ':', '@') || in(code, '[', '`') || in(code, '{', '~');
  }
  const auto category = property(code).category;
  if (category < UTF8PROC_CATEGORY_PC || category > UTF8PROC_CATEGORY_PO) {
    return code == 0x166d || code == 0x111c9;  // were punctuation in Unicode 8
  }
  return !punctuation_unknown_to_library(code);
}

bool is_word(uint32_t code) {
  // Alphabetic is the letters, letter numbers, some marks, and these circled letters.
  if (in(code, 0x24b6, 0x24e9) || in(code, 0x1f130, 0x1f149) || in(code, 0x1f150, 0x1f169) ||
      in(code, 0x1f170, 0x1f189) || code == 0x200c || code == 0x200d) {
    return true;
  }
  const auto category = property(code).category;
  return (category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_NL) ||
         category == UTF8PROC_CATEGORY_PC;
}

void append_lower(uint32_t code, std::string& text) {
  constexpr uint32_t kDottedCapitalI = 0x130;  // the one character with two in lower case
  if (code == kDottedCapitalI) {
    text += "i\u0307";
  } else {
    append_utf8(static_cast<uint32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(code))), text);
  }
}

void append_utf8(uint32_t code, std::string& text) {
  std::array<utf8proc_uint8_t, 4> bytes{};
  const auto length = utf8proc_encode_char(static_cast<utf8proc_int32_t>(code), bytes.data());
  text.append(reinterpret_cast<const char*>(bytes.data()), static_cast<size_t>(length));
}

}  // namespace hearth
