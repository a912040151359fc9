// The tokenizer of a model directory, as tokenizer.json describes it: BPE with the pipeline around it.
// Ids are those of the official library.
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

struct Encoding {
  std::vector<int32_t> ids;
  /// For every id the bytes of the original text that it stands for (before normalization). A token
  /// may hold part of a character; where NFC rewrote a cluster of characters, the whole cluster.
  std::vector<TextSpan> spans;
};

struct EncodeOptions {
  bool add_special = false;  // with what the post-processor adds (BOS): for texts, not for chats
  /// Parts of the text, ascending and apart, that somebody wrote into it (`--no-special-in-content`):
  /// special added tokens that reach into one are read as text there. Other added tokens are found.
  std::span<const TextSpan> content = {};
};

/// tokenizer.json is refused where it is larger.
inline constexpr uint64_t kMaxTokenizerBytes = uint64_t{128} << 20;

/// Immutable after loading: threads may share it.
///
/// Which components are interpreted stands in docs/text.md. Any other component, setting or key is an
/// input error that names it and its value. `truncation` and `padding` are not applied.
class Tokenizer {
 public:
  /// Reads tokenizer.json and, when there, tokenizer_config.json. `follow_links`: links may lead anywhere.
  explicit Tokenizer(const std::string& directory, bool follow_links = false);
  /// From the contents of the two files (the second null when missing); `directory` names them in
  /// messages.
  Tokenizer(const Json& tokenizer_json, const Json& tokenizer_config, const std::string& directory);
  ~Tokenizer();
  Tokenizer(Tokenizer&&) noexcept;
  Tokenizer& operator=(Tokenizer&&) noexcept;

  /// Ids of a valid UTF-8 text of less than 2^31 bytes (callers check: they know file and line).
  /// Added tokens typed in the text are found. A character that the vocabulary lacks gives no id
  /// where there is no unknown token, as in the official library. Ids that the post-processor adds
  /// have an empty span at the begin or the end. Input error: a regex of tokenizer.json runs into
  /// its limit.
  Encoding encode(std::string_view text, const EncodeOptions& options = {}) const;

  /// The text of ids as the decoder of tokenizer.json writes it: valid UTF-8, U+FFFD for bytes that
  /// are not. Ids that no token has give nothing. `skip_special`: nor do special added tokens.
  std::string decode(std::span<const int32_t> ids, bool skip_special = false) const;

  /// The token of an id as tokenizer.json writes it (in the byte-level alphabet, with U+2581 for a
  /// space, ...); nullopt for an id without one.
  std::optional<std::string_view> token(int32_t id) const;

  /// One more than the largest id.
  int64_t vocabulary_size() const;
  /// Id of an added token or vocabulary entry by its content; vocabulary entries in the byte-level
  /// alphabet of tokenizer.json.
  std::optional<int32_t> id_of(std::string_view token) const;
  /// An added token that is marked special (skipped when text is shown).
  bool is_special(int32_t id) const;

  /// `eos_token` of tokenizer_config.json and its id; input error when it names none.
  const std::string& end_token() const;
  int32_t end_id() const;
  bool has_end_token() const;

 private:
  friend class StreamDecoder;
  struct Parts;
  std::unique_ptr<const Parts> parts_;
};

/// Encodes each line of a text file (`-`: standard input) and calls `line` with it, in order. Only
/// "\n" ends a line; an empty line is a text. `add_special` as in EncodeOptions. Input error naming
/// FILE:LINE for invalid UTF-8 and for lines from 48 MiB on.
void encode_lines(const Tokenizer& tokenizer, const std::string& file, bool add_special,
                  const std::function<void(const Encoding&)>& line);

}  // namespace hearth
