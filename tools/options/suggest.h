// "Did you mean": finds the nearest name.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace hearth {

/// The candidate with the fewest edits (insert, delete, change a letter, or swap two neighbours),
/// the first on ties. Empty if even the best differs in most letters.
std::string nearest_name(std::string_view name, const std::vector<std::string>& candidates);

}  // namespace hearth
