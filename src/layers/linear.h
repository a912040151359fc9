// The linear maps of a task, with bias, adapter and gradients.
#pragma once

#include <optional>

#include "layers/body.h"

namespace hearth {

/// A linear map of a block. Its low-rank pair, if it has one, gets this task's dropout. `rows` has
/// the ids of the input's rows for dropout (Dropout::ids); empty: an id is the row's number. Of a
/// task over several micro-batches: `keys` (dropout_key) of the map.
LinearView linear_of(const BodyContext& c, BlockId block, Slot weight, std::optional<Slot> bias,
                     Compute compute, ConstView rows = {}, std::span<const uint64_t> keys = {});
/// The dropout key of a weight for a micro-batch: equal for all maps of a slot and layer.
/// `of_micro_batch`: its Value::dropout_key.
uint64_t dropout_key(double of_micro_batch, int32_t layer, Slot weight);

/// Adds the gradients of the trained parts of a map, from dy and the map's input x.
void add_linear_gradient(const BodyContext& c, BlockId block, Slot weight, std::optional<Slot> bias,
                         const LinearView& map, ConstView dy, ConstView x);

/// Whether the embeddings of this pass get noise.
inline bool has_noise(const RunSettings& settings, Pass pass) {
  return settings.noise > 0 && pass == Pass::train;
}

/// Whether tasks of this pass apply dropout to the inputs of adapters. Such tasks declare the
/// dropout key as a port.
bool has_dropout(const RunSettings& settings, Pass pass);
void add_dropout_port(const TaskShape& s, std::vector<Port>& ports);

/// Declares that a task reads blocks [begin, end) and their adapters, and in backward adds to their
/// gradients.
void add_block_uses(const TaskShape& s, BlockId begin, BlockId end, std::vector<BlockUse>& uses);

}  // namespace hearth
