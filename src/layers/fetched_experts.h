// Experts whose weights a rank does not keep, though it computes with them (hybrid-ep). Their owner sends
// them before each use, as the value `fetched_experts`, while the layer before computes:
//
//   layer       l - 1           l               l + 1           l            l - 1
//   collective  fetch l ......  fetch l + 1 ..  (is last)       fetch l - 1  ...
//   compute     E of l - 1      E of l          E, backward     backward     backward
//
// So a rank has the weights of two such layers at one time. Their bytes cross the links twice for each
// group of micro-batches, those of the last layer once. Adapters and gradients of these experts are
// kept.
//
//   value       expert a [gate | up | down], expert b [gate | up | down], ...   each aligned
#pragma once

#include <cstddef>

#include "base/arena.h"
#include "layers/body.h"
#include "layers/divided.h"
#include "model/parameter_memory.h"

namespace hearth {

/// f(id, type, offset) of each tensor of an expert, as they lie behind each other. Returns its bytes.
template <class F>
size_t each_fetched_tensor(const ParameterTable& table, BlockId expert, const CopyPolicy& policy,
                           const F& f) {
  size_t bytes = 0;
  for (TensorId id = table.block(expert).begin; id < table.block(expert).end; ++id) {
    const DType type = read_type(table, id, policy);
    f(id, type, bytes);
    bytes = align_up(bytes + static_cast<size_t>(table.tensor(id).size()) * size_of(type));
  }
  return bytes;
}

/// The same of the experts of a layer that this rank fetches, in table order, as they lie in the value.
template <class F>
size_t each_fetched(const ParameterTable& table, int32_t layer, int64_t experts,
                    const CopyPolicy& policy, const F& f) {
  size_t bytes = 0;
  const BlockId first = table.find_block(BlockKind::expert, layer, 0);
  for (BlockId block = first; block < first + static_cast<BlockId>(experts); ++block) {
    if (!table.block(block).fetched) continue;
    bytes += each_fetched_tensor(
        table, block, policy, [&](TensorId id, DType type, size_t at) { f(id, type, bytes + at); });
  }
  return bytes;
}

/// Of a layer with experts: 0 if this rank fetches none.
size_t fetched_bytes(const ParameterTable& table, int32_t layer, int64_t experts,
                     const CopyPolicy& policy);

/// Adds the value to the ports of a task, if ranks fetch experts of its layer in this pass. A rank that
/// fetches none has it, too: its experts wait for those of the others, as they do at the others.
void add_fetched_port(const TaskShape& s, Access access, std::vector<Port>& ports);
/// The weight of an expert that this rank fetches, in a task that declares the value.
ConstView fetched_weight(const BodyContext& c, BlockId block, Slot slot);

}  // namespace hearth
