// The linear maps of a task with all their parts, and where their gradients go.
#pragma once

#include <optional>

#include "layers/body.h"

namespace hearth {

/// A map of a block, its low-rank pair with this task's dropout. `rows`: what the rows of the input
/// are known by (Dropout::ids), empty: their numbers.
LinearView linear_of(const BodyContext& c, BlockId block, Slot weight, std::optional<Slot> bias,
                     Compute compute, ConstView rows = {});

/// Adds the gradients of a map of a block, as far as it is trained, from dy and its input.
void add_linear_gradient(const BodyContext& c, BlockId block, Slot weight, std::optional<Slot> bias,
                         const LinearView& map, ConstView dy, ConstView x);

/// Whether tasks of this pass drop inputs of adapters; those declare the key that they do it by.
bool has_dropout(const RunSettings& settings, Pass pass);
void add_dropout_port(const TaskShape& s, std::vector<Port>& ports);

/// Blocks [begin, end) and their adapters, read, and in the backward trained.
void add_block_uses(const TaskShape& s, BlockId begin, BlockId end, std::vector<BlockUse>& uses);

}  // namespace hearth
