// Ordered lists of implementations: the first one that takes a problem computes it. The ops of a back
// end are such lists (op.h), and so are the products inside its ops (libraries before own kernels).
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>

namespace hearth {

using Say = std::function<void(const std::string&)>;

/// Says "NAME not used: REASON". Each such line is said once in the process.
void say_declined(const Say& say, std::string_view name, std::string_view reason);
/// Says a line in the log.
void log_line(const std::string& line);

/// The first implementation of the list that takes the problem, null if all decline. An
/// implementation has a `name()` and `declines(arguments...)`, which returns a text: why it does not
/// take the problem, or nothing. It decides by shapes and types alone, so that a repeated run makes the
/// same choices. Without `say` no reason is said. An implementation that has `refused()` and returns true
/// is passed over.
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
