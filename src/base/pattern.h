// Regular expressions from foreign files, run by PCRE2 with limits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace hearth {

/// A compiled UTF-8 pattern. Immutable; threads and copies share it.
class Pattern {
 public:
  enum class Use : uint8_t {
    search,  // finds the leftmost match; ^ and $ also match at line breaks (\n)
    whole,   // matches a whole text, like Python's re.fullmatch
  };
  struct Rules {
    Use use = Use::search;
    size_t most_bytes = 0;  // limit of the pattern's length
    /// Translates the pattern to PCRE2's syntax; null: no translation.
    std::string (*translate)(std::string_view pattern, const std::string& where) = nullptr;
  };
  /// Input error if a match needs more.
  struct Limits {
    uint32_t backtracks = 0;
    uint32_t depth = 0;
  };
  struct Match {
    size_t begin = 0, end = 0;
  };

  /// Messages start with `where` (file and field). Input error if the pattern is too long or
  /// invalid.
  Pattern(const std::string& pattern, const Rules& rules, std::string where);

  /// The leftmost match that begins in [start, last]; nullopt if none. `text` must be valid UTF-8.
  std::optional<Match> find(std::string_view text, size_t start, size_t last, Limits limits) const;
  /// Whether a `whole` pattern matches `text`.
  bool matches(std::string_view text, Limits limits) const;

 private:
  struct Code;
  std::shared_ptr<const Code> code_;
};

}  // namespace hearth
