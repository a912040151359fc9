// shard: ends a logical shard at one place. The task's layer is the number of the shard, of those that
// this rank computes.
#include "layers/kinds.h"

namespace hearth {

namespace {

class Shard final : public Body {
 public:
  std::vector<Port> ports(const TaskShape&) const override { return {}; }

  std::vector<BlockUse> blocks(const TaskShape& s) const override {
    std::vector<BlockUse> uses;
    const auto all = static_cast<BlockId>(s.table.blocks().size());
    for (const auto& [begin, end] : blocks_at(s.table, 0, all, s.place)) {
      uses.push_back({begin, end, BlockAccess::add_gradient});
    }
    return uses;
  }

  ScratchNeed scratch(const TaskShape& s, const OpSet& ops) const override {
    return ops.row_scratch(1, s.spec.hidden);
  }

  void run(const BodyContext& c) const override {
    c.ranks->end_shard(c.ops, c.stream, c.place, c.layer);
  }
};

}  // namespace

const Body& shard_body() {
  static const Shard body;
  return body;
}

}  // namespace hearth
