// README.md of an adapter directory, for the hub and for people.
#pragma once

#include <string>

#include "checkpoint/model_card.h"
#include "peft/targets.h"

namespace hearth {

std::string adapter_card(const AdapterPlan& plan, const CardBase& base, const CardRows& rows);

}  // namespace hearth
