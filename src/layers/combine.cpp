// C: the layer's output: the residual, the weighted sum of the experts' outputs, and the output of
// the shared expert or dense MLP. A backward is needed only if ranks share the experts
// (TaskShape::copies_rows): every routed row gets its token's gradient, not yet weighted; of a divided
// layer, a task at each place does so for the rows of its part. Otherwise the experts read gradients
// of tokens through the routing.
//
// Of an expert that is divided along its width, what the device's columns give is added to what came
// from the host, before anything else.
//
// With partial sums (TaskShape::sums) the forward is several tasks: at the dense parts the residual and
// the shared expert, then for each part, in the order of the places, its sum. A part elsewhere is
// summed there first, and its sum crosses the link.
#include "layers/kinds.h"

namespace hearth {

namespace {

class Combine final : public Body {
 public:
  std::vector<Port> ports(const TaskShape& s) const override {
    std::vector<Port> list;
    if (s.phase == Phase::backward) {
      if (!s.copies_rows()) return list;
      list.push_back(ports::row_ints(s, Value::route_source, Access::read));
      if (!s.part.all()) add_part_ports(s, list);
      list.push_back(ports::hidden(s, Value::d_residual, Access::read, 1));
      list.push_back(ports::routed(s, Value::d_expert_out, Access::write));
      return list;
    }
    const ExpertSum sum(s);
    if (sum.begins) {
      list.push_back(ports::hidden(s, Value::mid, Access::read));
      if (!s.moe() || s.shared()) list.push_back(ports::hidden(s, Value::mlp_out, Access::read));
    }
    if (sum.rows) {
      list.push_back({.value = Value::route_row_of,
                      .access = Access::read,
                      .dtype = DType::i32,
                      .rows_per_token = 1,
                      .cols = s.spec.experts_per_token});
      if (!s.part.all()) add_part_ports(s, list);
      list.push_back(
          ports::routed(s, Value::expert_out, s.divides ? Access::update : Access::read));
      if (s.divides) {
        list.push_back(ports::divided(Access::read));
        list.push_back(ports::hidden(s, Value::divided_out, Access::read));
      }
      list.push_back({.value = Value::weight,
                      .access = Access::read,
                      .dtype = s.settings.activations,
                      .rows_per_token = 1,
                      .cols = s.spec.experts_per_token});
    }
    if (sum.sends || sum.receives) {
      const Access access = sum.sends ? Access::write : Access::read;
      list.push_back(ports::hidden(s, Value::expert_sum, access));
    }
    if (!sum.sends) {
      const Access access = sum.begins ? Access::write : Access::update;
      list.push_back(ports::hidden(s, Value::residual, access, 1));
    }
    return list;
  }

  std::vector<BlockUse> blocks(const TaskShape&) const override { return {}; }
  ScratchNeed scratch(const TaskShape& s, const OpSet& ops) const override {
    return ops.row_scratch(s.tokens * (s.moe() ? s.spec.experts_per_token : 1), s.spec.hidden);
  }

  void run(const BodyContext& c) const override {
    if (c.phase == Phase::backward) {
      c.ops.permute(c.stream, c.in(Value::d_residual, 1), row_vector(c.in(Value::route_source)),
                    part_offsets(c), c.out(Value::d_expert_out));
      return;
    }
    if (c.has(Value::divided)) add_divided(c, Value::divided_out, Value::expert_out);
    const bool here = c.has(Value::residual);
    const View out = here ? c.out(Value::residual, 1) : c.out(Value::expert_sum);
    ConstView base = here ? ConstView(out) : ConstView();
    if (c.has(Value::mid)) base = c.in(Value::mid);
    const auto add = [&](ConstView to_base) {
      c.ops.add(c.stream, base, to_base, out);
      base = out;
    };
    if (c.has(Value::mlp_out)) add(c.in(Value::mlp_out));
    if (c.has(Value::expert_out)) {
      const RoutingView routing{part_offsets(c), {}, c.in(Value::route_row_of)};
      c.ops.combine(c.stream, c.in(Value::expert_out), routing, c.in(Value::weight), base, out);
    } else if (here && c.has(Value::expert_sum)) {
      add(c.in(Value::expert_sum));
    } else if (base.data != out.data) {
      c.ops.cast(c.stream, base, out);  // the parts are added by tasks of their own
    }
  }
};

}  // namespace

const Body& combine_body() {
  static const Combine body;
  return body;
}

}  // namespace hearth
