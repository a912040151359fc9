// What decisions about experts know of earlier steps, as saved states have it.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/json.h"
#include "model/spec.h"
#include "plan/decisions/split_decider.h"

namespace hearth {

/// The member `decisions` of a state's manifest (docs/checkpoint-format.md). `names`: of places.
Json to_json(std::span<const DecidedPast> past, const std::vector<std::string>& names);

/// The inverse, without devices that this run does not have. Storage error, naming `source`, for what
/// `to_json` cannot have written.
std::vector<DecidedPast> decided_past(const Json& saved, const std::vector<std::string>& names,
                                      const ModelSpec& spec, const std::string& source);

}  // namespace hearth
