// The way of a text through the parts of a tokenizer.
#include <algorithm>

#include "base/error.h"
#include "base/utf8.h"
#include "data/tokenizer/tokenizer.h"
#include "data/tokenizer/tokenizer_parts.h"

namespace hearth {
namespace {

constexpr size_t kMaxText = size_t{1} << 31;

TextSpan moved(TextSpan span, uint32_t by) { return {span.begin + by, span.end + by}; }

bool reaches_into(std::span<const TextSpan> parts, TextSpan span) {
  return std::any_of(parts.begin(), parts.end(),
                     [&](TextSpan part) { return part.begin < span.end && span.begin < part.end; });
}

// Calls `plain(span)` for what lies between the matches, and `token(match)` for these, in order.
void between(std::string_view text, const std::vector<AddedTokens::Match>& matches,
             const auto& plain, const auto& token) {
  uint32_t done = 0;
  for (const auto& match : matches) {
    if (done < match.span.begin) plain(TextSpan{done, match.span.begin});
    token(match);
    done = match.span.end;
  }
  if (done < text.size()) plain(TextSpan{done, static_cast<uint32_t>(text.size())});
}

}  // namespace

Encoding Tokenizer::encode(std::string_view text, const EncodeOptions& options) const {
  HEARTH_CHECK(text.size() < kMaxText, "a text below 2 GiB");
  HEARTH_CHECK(find_invalid_utf8(text) == std::string_view::npos, "valid UTF-8");
  const Parts& parts = *parts_;
  const bool spell = parts.pre_tokenizer.gives_bytes() && !parts.bpe.takes_bytes();
  TextRoom room(parts.source + ": normalizer and pre_tokenizer");
  room.add_text(text.size());
  Encoding out;
  const auto add = [&](int32_t id, TextSpan span) {
    out.ids.push_back(id);
    out.spans.push_back(span);
  };
  const auto as_text = [&](const AddedToken& token, TextSpan original) {
    return token.special && reaches_into(options.content, original);
  };

  // A part of the normalized text of the piece of the text that begins at `offset`.
  const auto encode_words = [&](const AlignedText& normal, TextSpan part, uint32_t offset) {
    Words words(normal.text().substr(part.begin, part.end - part.begin), &room);
    const auto original = [&](uint32_t begin, uint32_t end) {
      return moved(normal.original({part.begin + begin, part.begin + end}), offset);
    };
    words.begins_document = [&](uint32_t begin) { return original(begin, begin + 1).begin == 0; };
    parts.pre_tokenizer.apply(words, spell);
    const size_t first = out.spans.size();
    for (const TextSpan word : words.spans) {
      parts.bpe.encode(words.text.text().substr(word.begin, word.end - word.begin), word.begin,
                       out);
    }
    if (words.text.unchanged() && normal.unchanged()) {
      for (size_t i = first; i < out.spans.size(); ++i) {
        out.spans[i] = moved(out.spans[i], part.begin + offset);
      }
    } else {
      for (size_t i = first; i < out.spans.size(); ++i) {
        const TextSpan span = words.text.original(out.spans[i]);
        out.spans[i] = original(span.begin, span.end);
      }
    }
  };
  const auto encode_plain = [&](TextSpan piece) {
    AlignedText normal(text.substr(piece.begin, piece.end - piece.begin), &room);
    parts.normalizer.apply(normal);
    const auto original = [&](TextSpan span) { return moved(normal.original(span), piece.begin); };
    const auto matches = parts.added.find(
        normal.text(), true,
        [&](const AddedToken& token, TextSpan span) { return as_text(token, original(span)); });
    between(
        normal.text(), matches, [&](TextSpan part) { encode_words(normal, part, piece.begin); },
        [&](const auto& match) { add(match.token->id, original(match.span)); });
  };

  if (options.add_special) {
    for (const int32_t id : parts.post_processor.before) add(id, {0, 0});
  }
  between(text, parts.added.find(text, false, as_text), encode_plain,
          [&](const auto& match) { add(match.token->id, match.span); });
  if (options.add_special) {
    const auto end = static_cast<uint32_t>(text.size());
    for (const int32_t id : parts.post_processor.behind) add(id, {end, end});
  }
  return out;
}

}  // namespace hearth
