// The tokenizer of a model directory, from tokenizer.json: BPE and the pipeline around it. Produces
// the ids of the official library.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"

namespace hearth {

/// Bytes [begin, end) of a text.
struct TextSpan {
  uint32_t begin = 0;
  uint32_t end = 0;
  friend bool operator==(const TextSpan&, const TextSpan&) = default;
};
inline TextSpan span_of(size_t begin, size_t end) {
  return {static_cast<uint32_t>(begin), static_cast<uint32_t>(end)};
}

struct Encoding {
  std::vector<int32_t> ids;
  /// Per id: its bytes of the original text, before normalization. A token may cover part of a
  /// character. If NFC rewrote a cluster of characters, it covers the whole cluster.
  std::vector<TextSpan> spans;
};

struct EncodeOptions {
  bool add_special = false;  // add ids of the post-processor (BOS): for texts, not for chats
  /// Parts of the text that are message content (`--no-special-in-content`), ascending and
  /// disjoint. A special token that overlaps a part is read as text. Other added tokens are still
  /// matched.
  std::span<const TextSpan> content = {};
};

/// A larger tokenizer.json is an error.
inline constexpr uint64_t kMaxTokenizerBytes = uint64_t{128} << 20;

/// Immutable after loading: threads may share it.
///
/// docs/text.md lists the supported components. Any other component, setting or key is an input
/// error that names it and its value. Ignores `truncation` and `padding`.
class Tokenizer {
 public:
  /// Reads tokenizer.json and, if present, tokenizer_config.json. `follow_links`: links may lead
  /// anywhere.
  explicit Tokenizer(const std::string& directory, bool follow_links = false);
  /// From the contents of the two files (the second is null if missing); `directory` names them in
  /// messages.
  Tokenizer(const Json& tokenizer_json, const Json& tokenizer_config, const std::string& directory);
  ~Tokenizer();
  Tokenizer(Tokenizer&&) noexcept;
  Tokenizer& operator=(Tokenizer&&) noexcept;

  /// Encodes valid UTF-8 of less than 2^31 bytes; callers check, because they know file and line.
  /// Matches added tokens in the text. As in the official library, a character outside the
  /// vocabulary gives no id if there is no unknown token. Ids of the post-processor have an empty
  /// span at the beginning or the end. Input error if a regex of tokenizer.json reaches its limit.
  Encoding encode(std::string_view text, const EncodeOptions& options = {}) const;

  /// Decodes ids by the decoder of tokenizer.json to valid UTF-8; invalid bytes become U+FFFD.
  /// Skips ids without a token, and with `skip_special` special added tokens.
  std::string decode(std::span<const int32_t> ids, bool skip_special = false) const;

  /// The token of an id as tokenizer.json spells it (byte-level alphabet, U+2581 for a space, ...);
  /// nullopt if the id has none.
  std::optional<std::string_view> token(int32_t id) const;

  /// One more than the largest id.
  int64_t vocabulary_size() const;
  /// The id of an added token or vocabulary entry, spelled as in tokenizer.json.
  std::optional<int32_t> id_of(std::string_view token) const;
  /// Whether the id is an added token marked special.
  bool is_special(int32_t id) const;

  /// `eos_token` of tokenizer_config.json and its id; input error if there is none.
  const std::string& end_token() const;
  int32_t end_id() const;
  bool has_end_token() const;

 private:
  friend class StreamDecoder;
  struct Parts;
  std::unique_ptr<const Parts> parts_;
};

/// Encodes each line of a text file (`-`: standard input) and calls `line` with the result, in
/// order. Only "\n" ends a line; empty lines count. `add_special` as in EncodeOptions. Input error
/// naming FILE:LINE for invalid UTF-8 and for lines of 48 MiB or more.
void encode_lines(const Tokenizer& tokenizer, const std::string& file, bool add_special,
                  const std::function<void(const Encoding&)>& line);

}  // namespace hearth
