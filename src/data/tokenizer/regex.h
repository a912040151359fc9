// Regular expressions of tokenizer.json, on PCRE2 with limits.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "data/tokenizer/tokenizer.h"

namespace hearth {

/// A compiled pattern. Immutable: threads may share it.
///
/// tokenizer.json means Oniguruma's dialect; see from_oniguruma for what is read.
class Regex {
 public:
  /// `where` (file and field) starts the messages. Input error for a pattern that is not read.
  Regex(const std::string& pattern, const std::string& where);
  ~Regex();
  Regex(Regex&&) noexcept;
  Regex& operator=(Regex&&) noexcept;

  /// The leftmost match in valid UTF-8 from `start` on, nullopt without one. Input error when a
  /// limit on backtracking is reached, or calls take seconds: a hostile pattern ends in bounded time.
  std::optional<TextSpan> find(std::string_view text, uint32_t start) const;

 private:
  struct Code;
  std::unique_ptr<const Code> code_;
};

}  // namespace hearth
