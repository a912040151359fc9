// README.md of an adapter directory, for the hub and for people.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "peft/targets.h"

namespace hearth {

/// The base model, as loaders of the adapter find it.
struct CardBase {
  std::string name;      // a path, or org/name of the hub
  std::string revision;  // on the hub; empty: the newest
};

std::string adapter_card(const AdapterPlan& plan, const CardBase& base,
                         const std::vector<std::pair<std::string, std::string>>& lines);

}  // namespace hearth
