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
/// tokenizer.json uses Oniguruma's dialect; from_oniguruma lists what is supported.
class Regex {
 public:
  /// Input error that starts with `where` (file and field) for an unsupported pattern.
  Regex(const std::string& pattern, const std::string& where);

  /// The leftmost match at or after `start`, or nullopt. The text must be valid UTF-8. Input error
  /// if backtracking reaches its limit or calls take seconds, so a hostile pattern ends in bounded
  /// time.
  std::optional<TextSpan> find(std::string_view text, uint32_t start) const;

 private:
  Pattern pattern_;
  std::string where_;
};

}  // namespace hearth
