// give: what updates of neighbouring layers, the embedding and the head among them, wrote, from the ranks
// that own their blocks to all others. In a schedule that rotates, after the updates of the step before; if
// none is due, nothing happens.
#include "layers/kinds.h"

namespace hearth {

namespace {

class Give final : public Body {
 public:
  std::vector<Port> ports(const TaskShape& s) const override {
    if (!s.rotates) return {};
    return {ports::scalar(Value::update_step, Access::read)};
  }

  std::vector<BlockUse> blocks(const TaskShape& s) const override {
    return trained_of_layers(s, BlockAccess::update);
  }

  ScratchNeed scratch(const TaskShape&, const OpSet&) const override { return {}; }

  void run(const BodyContext& c) const override {
    const bool is_due = !c.has(Value::update_step) || c.scalar(Value::update_step) > 0;
    if (is_due) c.ranks->give(c.stream, numbers_of(c.blocks));
  }
};

}  // namespace

const Body& give_body() {
  static const Give body;
  return body;
}

}  // namespace hearth
