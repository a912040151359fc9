#include "layers/linear.h"

#include "base/random.h"
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

uint64_t dropout_key(const BodyContext& c, Slot weight, int64_t segment) {
  const Random site(static_cast<uint64_t>(c.scalar(Value::dropout_key, segment)),
                    RandomSite::dropout, static_cast<uint32_t>(c.layer),
                    static_cast<uint32_t>(weight));
  return site.bits(0);
}

LinearView linear_of(const BodyContext& c, BlockId block, Slot weight, std::optional<Slot> bias,
                     Compute compute, ConstView rows, std::span<const uint64_t> keys) {
  LinearView map = c.table.linear(block, weight, bias, compute);
  if (map.low_rank && has_dropout(c.settings, c.pass)) {
    map.low_rank.dropout = {c.settings.lora_dropout, dropout_key(c, weight), rows, 0, keys};
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
