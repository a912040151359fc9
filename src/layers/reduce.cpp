// reduce: the gradients of neighbouring layers, the embedding and the head among them, to the ranks that
// own their blocks. What other ranks own is zero afterwards.
#include "layers/kinds.h"

namespace hearth {

namespace {

class Reduce final : public Body {
 public:
  std::vector<Port> ports(const TaskShape&) const override { return {}; }

  std::vector<BlockUse> blocks(const TaskShape& s) const override {
    return trained_of_layers(s, BlockAccess::add_gradient);
  }

  ScratchNeed scratch(const TaskShape& s, const OpSet& ops) const override {
    return ops.row_scratch(1, s.spec.hidden);
  }

  void run(const BodyContext& c) const override {
    c.ranks->reduce(c.ops, c.stream, numbers_of(c.blocks));
  }
};

}  // namespace

const Body& reduce_body() {
  static const Reduce body;
  return body;
}

}  // namespace hearth
