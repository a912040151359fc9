// embed: rows of the embedding table for the ids of a micro-batch, in training with noise if the
// settings ask for it.
#include "layers/kinds.h"
#include "layers/linear.h"

namespace hearth {

namespace {

class Embed final : public Body {
 public:
  std::vector<Port> ports(const TaskShape& s) const override {
    const bool backward = s.phase == Phase::backward;
    std::vector<Port> list{ports::token_ints(Value::ids, Access::read),
                           backward ? ports::hidden(s, Value::d_residual, Access::read)
                                    : ports::hidden(s, Value::residual, Access::write)};
    if (!backward && has_noise(s.settings, s.pass)) {
      list.push_back(ports::scalar(Value::noise_key, Access::read));
      list.push_back({.value = Value::query_offsets,
                      .access = Access::read,
                      .dtype = DType::i32,
                      .rows_per_token = 1,
                      .extra_rows = 1});
    }
    return list;
  }

  std::vector<BlockUse> blocks(const TaskShape& s) const override {
    const BlockId id = s.table.find_block(BlockKind::embedding);
    return {{id, id + 1,
             s.phase == Phase::backward ? BlockAccess::add_gradient : BlockAccess::read_weights}};
  }

  ScratchNeed scratch(const TaskShape& s, const OpSet& ops) const override {
    return ops.row_scratch(s.tokens, s.spec.hidden);
  }

  void run(const BodyContext& c) const override {
    const TensorId table =
        *c.table.find_slot(c.table.find_block(BlockKind::embedding), Slot::embedding);
    const ConstView ids = row_vector(c.in(Value::ids));
    if (c.phase == Phase::backward) {
      const View gradient = c.table.gradient(table);
      if (!gradient) return;
      c.ops.embedding_backward(c.stream, ids, c.in(Value::d_residual), c.spec.padding_id, gradient);
    } else {
      c.ops.embedding_forward(c.stream, ids, c.table.weight(table), c.out(Value::residual));
      if (!has_noise(c.settings, c.pass)) return;
      const Noise noise{static_cast<uint64_t>(c.scalar(Value::noise_key)), c.settings.noise};
      const ConstView offsets = c.in(Value::query_offsets).slice(0, c.batch.sequences + 1);
      c.ops.embedding_noise(c.stream, noise, row_vector(offsets), c.out(Value::residual));
    }
  }
};

}  // namespace

const Body& embed_body() {
  static const Embed body;
  return body;
}

}  // namespace hearth
