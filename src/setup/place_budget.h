// How much memory of a place a run may use, and the option that raises the limit.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace hearth {

struct PlaceBudget {
  std::string name;    // "host", "cuda:0", "virtual:0"
  uint64_t bytes = 0;  // for the host: limit of the process
  /// The option that raises it, with {} for the size: "--cpu-memory {}". Of a virtual device: --devices
  /// with the whole list, or --rank-devices with that of its rank.
  std::string remedy;
  std::optional<size_t> in_list = {};  // of a virtual device: its number in the list, from 0

  /// The option with a size (`size_option`): "--cpu-memory 512M".
  std::string raised_to(const std::string& size) const;
};

/// A budget to raise, and its new size as the option takes it.
struct RaisedBudget {
  PlaceBudget budget;
  std::string size;
};
/// The options that raise these budgets together: virtual devices share one list.
std::string options_that_raise(const std::vector<RaisedBudget>& budgets);

}  // namespace hearth
