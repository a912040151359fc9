// What saved state holds of the parameters.
#pragma once

#include "base/state_registry.h"
#include "model/parameter_table.h"

namespace hearth {

/// Registers masters and moments of a table that is bound to memory: views in the order of the
/// table, which is that of the updates. A load makes the working copies again. The table must
/// outlive the registry.
void register_parameters(StateRegistry& registry, ParameterTable& table);

}  // namespace hearth
