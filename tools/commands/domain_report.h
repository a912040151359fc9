// What `simulate domains` says: HybridEP's tables, beside the paper's figures.
#pragma once

#include <string>

#include "base/json.h"

namespace hearth {

/// {"simulated": true, "pairs", "best_domain", "iterations", "clusters"}.
Json domain_study_json();
std::string domain_study_text();

}  // namespace hearth
