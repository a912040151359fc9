// The components of saved state that hold parameters.
#pragma once

#include "base/state_registry.h"
#include "model/parameter_table.h"

namespace hearth {

/// Registers the masters and moments of a table that is bound to memory. Views are in the order of
/// the table, which is the order of the updates. A load recomputes the working copies. The table
/// must outlive the registry.
void register_parameters(StateRegistry& registry, ParameterTable& table);

}  // namespace hearth
