// The components of saved state that hold parameters.
#pragma once

#include "base/state_registry.h"
#include "model/parameter_table.h"

namespace hearth {

/// The trained tensors that other ranks own, as the rank shows them that answers for the whole state.
class TensorsElsewhere {
 public:
  virtual ~TensorsElsewhere() = default;
  /// Sets bytes, memory, writer and digest of the view of a tensor's copy, which has so many bytes.
  virtual void show(TensorId id, CopyRole role, size_t bytes, StateView& view) const = 0;
};

/// Registers the masters and moments of the trained tensors that this rank owns. Views are in the
/// order of the table, which is the order of the updates. A load recomputes the working copies. The
/// table must outlive the registry.
void register_parameters(StateRegistry& registry, ParameterTable& table);
/// The same of all trained tensors, with those that other ranks own where `elsewhere` shows them.
void register_parameters(StateRegistry& registry, ParameterTable& table,
                         const TensorsElsewhere& elsewhere);
/// Registers the masters in memory of this rank alone, whoever owns them.
void register_masters(StateRegistry& registry, ParameterTable& table);

}  // namespace hearth
