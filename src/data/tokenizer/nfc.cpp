#include "data/tokenizer/nfc.h"

#include <utf8proc.h>

#include <algorithm>
#include <array>

#include "base/error.h"
#include "base/utf8.h"

namespace hearth {
namespace {

constexpr uint32_t kFirstMark = 0x300;  // nothing below is changed, reordered or composed onto
constexpr unsigned char kFirstMarkLead = 0xcc;  // its first byte in UTF-8
constexpr uint16_t kNoMapping = UINT16_MAX;
constexpr auto kDecompose = static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_DECOMPOSE);
constexpr auto kCompose = static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE);

bool in(uint32_t code, uint32_t first, uint32_t last) { return code >= first && code <= last; }

// Whether a character never changes what stands before it: normalization can be done apart on both
// sides of the place before it. Marks may
// reorder or compose; of the letters, conjoining jamo and Kirat Rai vowels compose. (U+11A7, beside
// the trailing jamo, does not; the library of Unicode 14 would swallow it, but never sees it here.)
bool starts_cluster(uint32_t code) {
  if (code < kFirstMark) return true;
  const bool jamo = in(code, 0x1161, 0x1175) || in(code, 0x11a8, 0x11c2);
  if (jamo || in(code, 0x16d40, 0x16d7f)) return false;
  const utf8proc_property_t* property = utf8proc_get_property(static_cast<utf8proc_int32_t>(code));
  return property->combining_class == 0 && property->category != UTF8PROC_CATEGORY_MN &&
         property->category != UTF8PROC_CATEGORY_MC && property->category != UTF8PROC_CATEGORY_ME;
}

// Whether a character that stands alone in its cluster is as it shall be.
bool is_normal_alone(uint32_t code) {
  return code < kFirstMark ||
         utf8proc_get_property(static_cast<utf8proc_int32_t>(code))->decomp_seqindex == kNoMapping;
}

void append_utf8(uint32_t code, std::string& text) {
  std::array<utf8proc_uint8_t, 4> bytes{};
  const auto length = utf8proc_encode_char(static_cast<utf8proc_int32_t>(code), bytes.data());
  text.append(reinterpret_cast<const char*>(bytes.data()), static_cast<size_t>(length));
}

// Decomposes each character, puts runs of marks in canonical order, composes. The library's own
// ordering is quadratic in the length of a run, hence the sort here.
std::string normalize_cluster(std::string_view cluster) {
  std::vector<utf8proc_int32_t> codes;
  while (!cluster.empty()) {
    const Utf8Char c = decode_utf8(cluster);
    cluster.remove_prefix(c.length);
    std::array<utf8proc_int32_t, 32> parts{};
    int boundary = 0;
    const auto count = utf8proc_decompose_char(static_cast<utf8proc_int32_t>(c.code), parts.data(),
                                               parts.size(), kDecompose, &boundary);
    HEARTH_CHECK(count > 0 && count <= static_cast<utf8proc_ssize_t>(parts.size()),
                 "a canonical decomposition");
    codes.insert(codes.end(), parts.begin(), parts.begin() + count);
  }
  const auto combining_class = [](utf8proc_int32_t code) {
    return utf8proc_get_property(code)->combining_class;
  };
  for (auto begin = codes.begin(); begin != codes.end();) {
    const auto starter = [&](utf8proc_int32_t code) { return combining_class(code) == 0; };
    begin = std::find_if_not(begin, codes.end(), starter);
    const auto end = std::find_if(begin, codes.end(), starter);
    std::stable_sort(begin, end, [&](utf8proc_int32_t a, utf8proc_int32_t b) {
      return combining_class(a) < combining_class(b);
    });
    begin = end;
  }
  const auto count =
      utf8proc_normalize_utf32(codes.data(), static_cast<utf8proc_ssize_t>(codes.size()), kCompose);
  HEARTH_CHECK(count >= 0, "canonical composition");
  std::string text;
  for (utf8proc_ssize_t i = 0; i < count; ++i) append_utf8(static_cast<uint32_t>(codes[i]), text);
  return text;
}

}  // namespace

NormalizedText::NormalizedText(std::string_view original) : original_(original) {
  const auto below_marks = [](char c) { return static_cast<unsigned char>(c) < kFirstMarkLead; };
  if (std::all_of(original.begin(), original.end(), below_marks)) return;
  size_t kept = 0;  // originals up to here are in text_, once something changed
  size_t begin = 0;
  while (begin < original.size()) {
    const Utf8Char first = decode_utf8(original.substr(begin));
    HEARTH_CHECK(first.length > 0, "valid UTF-8");
    size_t end = begin + first.length;
    for (Utf8Char c; end < original.size(); end += c.length) {
      c = decode_utf8(original.substr(end));
      HEARTH_CHECK(c.length > 0, "valid UTF-8");
      if (starts_cluster(c.code)) break;
    }
    const std::string_view cluster = original.substr(begin, end - begin);
    if (cluster.size() > first.length || !is_normal_alone(first.code)) {
      std::string normal = normalize_cluster(cluster);
      if (normal != cluster) {
        unchanged_ = false;
        text_.append(original, kept, begin - kept);
        const auto at = static_cast<uint32_t>(text_.size());
        text_ += normal;
        changes_.push_back({{at, static_cast<uint32_t>(text_.size())},
                            {static_cast<uint32_t>(begin), static_cast<uint32_t>(end)}});
        kept = end;
      }
    }
    begin = end;
  }
  if (!unchanged_) text_.append(original, kept);
}

const NormalizedText::Change* NormalizedText::last_change_from(uint32_t position) const {
  const auto after = std::upper_bound(
      changes_.begin(), changes_.end(), position,
      [](uint32_t p, const Change& change) { return p < change.normalized.begin; });
  return after == changes_.begin() ? nullptr : &*std::prev(after);
}

TextSpan NormalizedText::original(TextSpan normalized) const {
  if (unchanged_ || normalized.begin == normalized.end) return normalized;
  const auto map = [&](uint32_t byte) -> TextSpan {
    const Change* change = last_change_from(byte);
    if (change == nullptr) return {byte, byte + 1};
    if (byte < change->normalized.end) return change->original;
    const uint32_t moved = change->original.end + (byte - change->normalized.end);
    return {moved, moved + 1};
  };
  return {map(normalized.begin).begin, map(normalized.end - 1).end};
}

}  // namespace hearth
