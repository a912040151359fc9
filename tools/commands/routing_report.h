// What `simulate routing` says of synthetic routing.
#pragma once

#include <string>

#include "base/json.h"
#include "predictor/synthetic_routing.h"

namespace hearth {

/// The document of --json: {"routing": {"skew", "g", "g_all", "persistence", "counts"}}, and with
/// a predictor "predictor": {"token_hit", "least_quarter"} and "predicted".
Json routing_json(const SyntheticRouting& routing);

/// Tables for people. `every_step`: the counts of each step and layer, too.
std::string routing_text(const SyntheticRouting& routing, bool every_step);

/// A Chrome trace: a counter per layer with the tokens of each expert. A step is a millisecond.
std::string routing_trace(const SyntheticRouting& routing);

}  // namespace hearth
