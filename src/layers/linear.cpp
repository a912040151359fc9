#include "layers/linear.h"

#include "base/random.h"
#include "layers/fetched_experts.h"
#include "layers/kinds.h"

namespace hearth {

bool has_dropout(const RunSettings& settings, Pass pass) {
  return settings.lora_dropout > 0 && pass == Pass::train;
}

void add_dropout_port(const TaskShape& s, std::vector<Port>& list) {
  if (has_dropout(s.settings, s.pass)) {
    list.push_back(ports::scalar(Value::dropout_key, Access::read));
  }
}

uint64_t dropout_key(double of_micro_batch, int32_t layer, Slot weight) {
  const Random site(static_cast<uint64_t>(of_micro_batch), RandomSite::dropout,
                    static_cast<uint32_t>(layer), static_cast<uint32_t>(weight));
  return site.bits(0);
}

LinearView linear_of(const BodyContext& c, BlockId block, Slot weight, std::optional<Slot> bias,
                     Compute compute, ConstView rows, std::span<const uint64_t> keys) {
  LinearView map =
      c.table.block(block).fetched
          ? c.table.linear_with(fetched_weight(c, block, weight), block, weight, bias, compute)
          : c.table.linear(block, weight, bias, compute);
  if (map.low_rank && has_dropout(c.settings, c.pass)) {
    const uint64_t key =
        keys.empty() ? dropout_key(c.scalar(Value::dropout_key), c.layer, weight) : 0;
    map.low_rank.dropout = {c.settings.lora_dropout, key, rows, 0, keys};
  }
  return map;
}

void add_linear_gradient(const BodyContext& c, BlockId block, Slot weight, std::optional<Slot> bias,
                         const LinearView& map, ConstView dy, ConstView x) {
  const LinearGradient gradient = c.table.linear_gradient(block, weight, bias);
  if (gradient) c.ops.linear_wgrad(c.stream, dy, x, map, gradient);
}

void add_block_uses(const TaskShape& s, BlockId begin, BlockId end, std::vector<BlockUse>& uses) {
  for (const auto& [first, last] : {std::pair{begin, end}, s.table.adapters_of(begin, end)}) {
    if (first == last) continue;
    uses.push_back({first, last, BlockAccess::read_weights});
    if (s.phase == Phase::backward) uses.push_back({first, last, BlockAccess::add_gradient});
  }
}

}  // namespace hearth
