// What `simulate zebra` says: HeterMoE's tables, simulated, beside the paper's figures.
#pragma once

#include <string>

#include "base/json.h"

namespace hearth {

/// {"simulated": true, "models", "utilisation", "gain"}.
Json zebra_study_json();
std::string zebra_study_text();

}  // namespace hearth
