// Ordered lists of implementations: the first implementation that takes a problem computes it. Ops
// are such lists (op.h), and so are the products inside ops (libraries before our own kernels).
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>

namespace hearth {

using Say = std::function<void(const std::string&)>;

/// Reports "NAME not used: REASON", once per process and line.
void say_declined(const Say& say, std::string_view name, std::string_view reason);
/// Writes a line to the log.
void log_line(const std::string& line);

/// The first implementation of the list that takes the problem; null if all decline. An
/// implementation has a `name()`, and `declines(arguments...)`, which returns the reason to
/// decline, or an empty text. It decides by shapes and types alone, so a repeated run makes the
/// same choices. Reasons go to `say`, if set. An implementation with a `refused()` that returns
/// true is skipped.
template <class Kind, class... Arguments>
const Kind* choose(std::span<const Kind* const> list, const Say& say, Arguments&&... arguments) {
  for (const Kind* one : list) {
    if constexpr (requires { one->refused(); }) {
      if (one->refused()) continue;
    }
    const auto reason = one->declines(arguments...);
    if (reason.empty()) return one;
    if (say) say_declined(say, one->name(), reason);
  }
  return nullptr;
}

}  // namespace hearth
