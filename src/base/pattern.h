// Regular expressions from files of others, on PCRE2 with limits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace hearth {

/// A compiled pattern on UTF-8. Immutable: threads and copies share it.
class Pattern {
 public:
  enum class Use : uint8_t {
    search,  // finds the leftmost match; ^ and $ also stand at line breaks (\n)
    whole,   // matches a whole text, as Python's re.fullmatch
  };
  struct Rules {
    Use use = Use::search;
    size_t most_bytes = 0;  // of a pattern as written
    /// Writes the pattern as PCRE2 reads it; null if it is PCRE2's already.
    std::string (*translate)(std::string_view pattern, const std::string& where) = nullptr;
  };
  /// A match that needs more is an input error.
  struct Limits {
    uint32_t backtracks = 0;
    uint32_t depth = 0;
  };
  struct Match {
    size_t begin = 0, end = 0;
  };

  /// `where` (file and field) starts the messages. Input error: the pattern is too long or invalid.
  Pattern(const std::string& pattern, const Rules& rules, std::string where);

  /// The leftmost match that begins in [start, last] of valid UTF-8; nullopt without one.
  std::optional<Match> find(std::string_view text, size_t start, size_t last, Limits limits) const;
  /// Whether a pattern for whole texts matches `text`.
  bool matches(std::string_view text, Limits limits) const;

 private:
  struct Code;
  std::shared_ptr<const Code> code_;
};

}  // namespace hearth
