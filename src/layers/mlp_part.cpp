// S: a SwiGLU MLP that every token visits: the dense one of a layer without routed experts, or the
// shared expert beside them, each token's part of it weighed by a sigmoid.
//
// forward   mlp_out = down(h), h = silu(gate(normed)) * up(normed); of a shared expert
//           mlp_out = s * down(h) = down(s * h), s = sigmoid(shared_gate(normed))
// backward  from d_residual of the next layer (C only adds) to d_normed
#include "layers/kinds.h"
#include "layers/linear.h"

namespace hearth {

namespace {

int64_t width_of(const TaskShape& s) {
  return s.shared() ? s.spec.shared_width : s.spec.dense_width;
}

BlockId block_of(const ParameterTable& table, bool shared, int32_t layer) {
  return table.find_block(shared ? BlockKind::shared : BlockKind::dense, layer);
}

class MlpPart final : public Body {
 public:
  std::vector<Port> ports(const TaskShape& s) const override {
    const bool backward = s.phase == Phase::backward;
    const DType type = s.settings.activations;
    const Access saved = backward ? Access::update : Access::write;
    const auto wide = [&](Value value, Access access) {
      return Port{.value = value,
                  .access = access,
                  .dtype = type,
                  .rows_per_token = 1,
                  .cols = width_of(s)};
    };
    std::vector<Port> list = {ports::hidden(s, Value::normed, Access::read),
                              wide(Value::mlp_gate, saved), wide(Value::mlp_up, saved),
                              wide(Value::tmp_h, Access::temporary)};
    if (s.shared())
      list.push_back(
          {.value = Value::mlp_logits, .access = saved, .dtype = type, .rows_per_token = 1});
    add_dropout_port(s, list);
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
    const BlockId id = block_of(s.table, s.shared(), s.layer);
    std::vector<BlockUse> uses;
    add_block_uses(s, id, id + 1, uses);
    return uses;
  }

  ScratchNeed scratch(const TaskShape& s, const OpSet& ops) const override {
    const BlockId block = block_of(s.table, s.shared(), s.layer);
    const int64_t rank = s.table.rank_of(block, block + 1);
    const ScratchNeed linear =
        max_of(ops.linear_scratch(s.tokens, width_of(s), s.spec.hidden, rank),
               ops.linear_scratch(s.tokens, s.spec.hidden, width_of(s), rank));
    return max_of(linear, ops.row_scratch(s.tokens, width_of(s)));
  }
  Work work(const TaskShape& s) const override {
    const double forward = 2.0 * static_cast<double>(s.spec.hidden) *
                           static_cast<double>(3 * width_of(s) + (s.shared() ? 1 : 0));
    const BlockId block = block_of(s.table, s.shared(), s.layer);
    return {matrix_work(s, forward, block, block + 1), 0, 0};
  }

  void run(const BodyContext& c) const override {
    if (c.phase == Phase::backward) {
      backward(c);
    } else {
      forward(c);
    }
  }

 private:
  static LinearView linear(const BodyContext& c, Slot slot) {
    return linear_of(c, block_of(c.table, c.shared(), c.layer), slot, std::nullopt,
                     slot == Slot::shared_gate ? c.settings.router_compute() : c.settings.compute);
  }

  static void add_gradient(const BodyContext& c, ConstView dy, ConstView x, Slot slot) {
    add_linear_gradient(c, block_of(c.table, c.shared(), c.layer), slot, std::nullopt,
                        linear(c, slot), dy, x);
  }

  static void forward(const BodyContext& c) {
    const ConstView normed = c.in(Value::normed);
    const View gate = c.out(Value::mlp_gate), up = c.out(Value::mlp_up), h = c.out(Value::tmp_h);
    c.ops.linear_forward(c.stream, normed, linear(c, Slot::gate), gate);
    c.ops.linear_forward(c.stream, normed, linear(c, Slot::up), up);
    c.ops.swiglu_forward(c.stream, gate, up, h);
    if (c.shared()) {
      const View logits = c.out(Value::mlp_logits);
      c.ops.linear_forward(c.stream, normed, linear(c, Slot::shared_gate), logits);
      c.ops.sigmoid_gate_forward(c.stream, row_vector(logits), h, h);
    }
    c.ops.linear_forward(c.stream, h, linear(c, Slot::down), c.out(Value::mlp_out));
  }

  static void backward(const BodyContext& c) {
    const ConstView normed = c.in(Value::normed), dy = c.in(Value::d_residual, 1);
    const View gate = c.out(Value::mlp_gate), up = c.out(Value::mlp_up);
    const View h = c.out(Value::tmp_h), dh = c.out(Value::tmp_dh);
    c.ops.linear_dgrad(c.stream, dy, linear(c, Slot::down), dh, false);
    if (c.shared()) {
      // The logits become their gradient, s * h is what down read.
      const View logits = row_vector(c.out(Value::mlp_logits));
      c.ops.swiglu_forward(c.stream, gate, up, h);
      c.ops.sigmoid_gate_forward(c.stream, logits, h, h);
      add_gradient(c, dy, h, Slot::down);
      c.ops.sigmoid_gate_backward(c.stream, dh, logits, h, logits, dh);
      c.ops.swiglu_backward(c.stream, dh, gate, up, h);
    } else {
      c.ops.swiglu_backward(c.stream, dh, gate, up, h);
      add_gradient(c, dy, h, Slot::down);
    }
    const View d_normed = c.out(Value::d_normed);
    add_gradient(c, gate, normed, Slot::gate);
    add_gradient(c, up, normed, Slot::up);
    c.ops.linear_dgrad(c.stream, gate, linear(c, Slot::gate), d_normed, false);
    c.ops.linear_dgrad(c.stream, up, linear(c, Slot::up), d_normed, true);
    if (c.shared()) {
      const ConstView d_logits = c.in(Value::mlp_logits);
      add_gradient(c, d_logits, normed, Slot::shared_gate);
      c.ops.linear_dgrad(c.stream, d_logits, linear(c, Slot::shared_gate), d_normed, true);
    }
  }
};

}  // namespace

const Body& mlp_body() {
  static const MlpPart body;
  return body;
}

}  // namespace hearth
