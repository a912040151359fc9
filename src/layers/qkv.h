// q, k and v of a layer. Part of the attention task.
//
// forward   q, k, v = linear(normed); q, k = rmsnorm(q, k), of each head or of a whole projection;
//           q, k, v clamped; q, k = rope(q, k)
// backward  from their gradients to the maps, the norms and normed
#pragma once

#include "layers/linear.h"

namespace hearth {

/// The maps and norms of a layer's attention block, looked up once per task.
struct AttentionWeights {
  const BodyContext& c;
  BlockId block;

  explicit AttentionWeights(const BodyContext& context)
      : c(context), block(context.table.find_block(BlockKind::attention, context.layer)) {}
  LinearView linear(Slot weight, Slot bias) const {
    return linear_of(c, block, weight, bias, c.settings.compute);
  }
  ConstView norm(Slot slot) const { return c.table.weight(*c.table.find_slot(block, slot)); }
  View gradient(Slot slot) const {
    const auto tensor = c.table.find_slot(block, slot);
    return tensor ? c.table.gradient(*tensor) : View{};
  }
  void add_gradient(ConstView dy, ConstView x, Slot weight, Slot bias) const {
    add_linear_gradient(c, block, weight, bias, linear(weight, bias), dy, x);
  }
};

/// `saved` is the access to values that forward keeps for backward: write in forward and recompute,
/// read in backward.
void add_qkv_ports(const TaskShape& s, Access saved, std::vector<Port>& list);
/// New keys and values are appended to the cached ones.
void qkv_forward(const BodyContext& c, const AttentionWeights& w, ConstView normed);
/// Overwrites dq, dk and dv, and replaces `normed` by its gradient.
void qkv_backward(const BodyContext& c, const AttentionWeights& w, View dq, View dk, View dv,
                  View normed);

}  // namespace hearth
