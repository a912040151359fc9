// README.md of an adapter directory: what the hub and people read.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "peft/targets.h"

namespace hearth {

std::string adapter_card(const AdapterPlan& plan, const std::string& base,
                         const std::vector<std::pair<std::string, std::string>>& lines);

}  // namespace hearth
