// Regular expressions of tokenizer.json.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/pattern.h"
#include "data/tokenizer/tokenizer.h"

namespace hearth {

/// A compiled pattern. Immutable: threads may share it.
///
/// tokenizer.json means Oniguruma's dialect; see from_oniguruma for what is read.
class Regex {
 public:
  /// `where` (file and field) starts the messages. Input error for a pattern that is not read.
  Regex(const std::string& pattern, const std::string& where);

  /// The leftmost match in valid UTF-8 from `start` on, nullopt without one. Input error when a
  /// limit on backtracking is reached, or calls take seconds: a hostile pattern ends in bounded time.
  std::optional<TextSpan> find(std::string_view text, uint32_t start) const;

 private:
  Pattern pattern_;
  std::string where_;
};

}  // namespace hearth
