// Keys of another trainer that together set one option.
#pragma once

#include <vector>

#include "commands/given.h"

namespace hearth {

/// Joins the values of one option where the trainer allows several keys for it: `save_strategy` and
/// `save_steps`, lists of modules, keys that say the same. Leaves contradictions as they are.
std::vector<Given> joined_keys(std::vector<Given> given);

}  // namespace hearth
