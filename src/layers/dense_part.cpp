// S: the dense SwiGLU MLP of a layer without routed experts.
//
// forward   mlp_out = down(silu(gate(normed)) * up(normed))
// backward  from d_residual of the next layer (C only adds) to d_normed
#include "layers/kinds.h"

namespace hearth {

namespace {

class DensePart final : public Body {
 public:
  std::vector<Port> ports(const TaskShape& s) const override {
    const bool backward = s.phase == Phase::backward;
    const Access saved = backward ? Access::update : Access::write;
    const auto wide = [&](Value value, Access access) {
      return Port{value, access, s.settings.activations, 1, 0, s.spec.dense_width, 0};
    };
    std::vector<Port> list = {ports::hidden(s, Value::normed, Access::read),
                              wide(Value::gate, saved), wide(Value::up, saved),
                              wide(Value::tmp_h, Access::temporary)};
    if (backward) {
      list.push_back(ports::hidden(s, Value::d_residual, Access::read, 1));
      list.push_back(ports::hidden(s, Value::d_normed, Access::write));
      list.push_back(wide(Value::tmp_dh, Access::temporary));
    } else {
      list.push_back(ports::hidden(s, Value::mlp_out, Access::write));
    }
    return list;
  }

  std::vector<BlockUse> blocks(const TaskShape& s) const override {
    const BlockId id = s.table.find_block(BlockKind::dense, s.layer);
    std::vector<BlockUse> uses = {{id, id + 1, BlockAccess::read_weights}};
    if (s.phase == Phase::backward) uses.push_back({id, id + 1, BlockAccess::add_gradient});
    return uses;
  }

  ScratchNeed scratch(const TaskShape& s, const OpSet& ops) const override {
    return max_of(ops.linear_scratch(s.tokens, s.spec.dense_width, s.spec.hidden),
                  ops.linear_scratch(s.tokens, s.spec.hidden, s.spec.dense_width));
  }
  Work work(const TaskShape& s) const override {
    const double forward =
        6.0 * static_cast<double>(s.spec.hidden) * static_cast<double>(s.spec.dense_width);
    const BlockId block = s.table.find_block(BlockKind::dense, s.layer);
    return {matrix_work(s, forward, block, block + 1), 0, 0};
  }

  void run(const BodyContext& c) const override {
    const BlockId block = c.table.find_block(BlockKind::dense, c.layer);
    const auto linear = [&](Slot slot) {
      return c.table.linear(block, slot, std::nullopt, c.settings.compute);
    };
    const ConstView normed = c.in(Value::normed);
    const View gate = c.out(Value::gate), up = c.out(Value::up), h = c.out(Value::tmp_h);
    if (c.phase != Phase::backward) {
      c.ops.linear_forward(c.stream, normed, linear(Slot::gate), gate);
      c.ops.linear_forward(c.stream, normed, linear(Slot::up), up);
      c.ops.swiglu_forward(c.stream, gate, up, h);
      c.ops.linear_forward(c.stream, h, linear(Slot::down), c.out(Value::mlp_out));
      return;
    }
    const auto add_gradient = [&](ConstView dy, ConstView x, Slot slot) {
      const View dw = c.table.gradient(*c.table.find_slot(block, slot));
      if (dw) c.ops.linear_wgrad(c.stream, dy, x, c.settings.compute, dw, {});
    };
    const ConstView dy = c.in(Value::d_residual, 1);
    const View dh = c.out(Value::tmp_dh);
    c.ops.linear_dgrad(c.stream, dy, linear(Slot::down), dh, false);
    c.ops.swiglu_backward(c.stream, dh, gate, up, h);
    add_gradient(dy, h, Slot::down);
    add_gradient(gate, normed, Slot::gate);
    add_gradient(up, normed, Slot::up);
    const View d_normed = c.out(Value::d_normed);
    c.ops.linear_dgrad(c.stream, gate, linear(Slot::gate), d_normed, false);
    c.ops.linear_dgrad(c.stream, up, linear(Slot::up), d_normed, true);
  }
};

}  // namespace

const Body& dense_body() {
  static const DensePart body;
  return body;
}

}  // namespace hearth
