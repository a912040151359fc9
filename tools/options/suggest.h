// "Did you mean": the nearest of some names.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace hearth {

/// The candidate that takes the fewest edits (a letter added, left out, changed, or two neighbours
/// swapped), the first of equals; empty when even that one is mostly different.
std::string nearest_name(std::string_view name, const std::vector<std::string>& candidates);

}  // namespace hearth
