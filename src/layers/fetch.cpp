// fetch: the weights of a layer's experts, from their owners to the other ranks that compute with them
// and keep none (layers/fetched_experts.h).
#include "layers/fetched_experts.h"
#include "layers/kinds.h"

namespace hearth {

namespace {

class Fetch final : public Body {
 public:
  std::vector<Port> ports(const TaskShape& s) const override {
    std::vector<Port> list;
    add_fetched_port(s, Access::write, list);
    return list;
  }

  /// All of the layer: which of them this rank sends, and which it gets, the ranks know.
  std::vector<BlockUse> blocks(const TaskShape& s) const override {
    const BlockId first = s.table.find_block(BlockKind::expert, s.layer, 0);
    return {{first, first + static_cast<BlockId>(s.spec.experts), BlockAccess::read_weights}};
  }

  ScratchNeed scratch(const TaskShape&, const OpSet&) const override { return {}; }

  void run(const BodyContext& c) const override {
    std::vector<View> into;
    if (c.has(Value::fetched_experts)) {
      auto* const data = static_cast<std::byte*>(c.out(Value::fetched_experts).raw());
      each_fetched(c.table, c.layer, c.spec.experts, policy_of(c.settings, true),
                   [&](TensorId id, DType type, size_t offset) {
                     const Tensor& tensor = c.table.tensor(id);
                     into.emplace_back(data + offset, type, tensor.rows, tensor.cols);
                   });
    }
    c.ranks->fetch(c.stream, numbers_of(c.blocks), into);
  }
};

}  // namespace

const Body& fetch_body() {
  static const Fetch body;
  return body;
}

}  // namespace hearth
