// D: which rows the experts compute, sorted by expert. The experts read tokens through this routing, so
// that nobody copies a token once for each of its choices. If the experts of a layer are divided among
// places, the routing is in the order of the split. A token crosses a link once, whatever the number of
// its choices, and in bf16 if all products of experts round it to bf16 anyway (TaskShape::rounds); then
// a task at each such place widens the tokens. If ranks share the experts, tokens are copied to rows,
// which are sent (TaskShape::copies_rows). Backward sums the gradients of a token's rows.
//
// With partial sums (TaskShape::sums) the backward is several tasks, as the forward of combine is.
#include "layers/kinds.h"
#include "layers/split.h"

namespace hearth {

RoutingView routing_of(const BodyContext& c) {
  return {row_vector(c.in(Value::route_offsets)), row_vector(c.in(Value::route_source)),
          c.in(Value::route_row_of)};
}

void add_routing_ports(const TaskShape& s, Access access, std::vector<Port>& ports) {
  const int64_t k = s.spec.experts_per_token;
  ports.push_back({.value = Value::route_offsets,
                   .access = access,
                   .dtype = DType::i32,
                   .extra_rows = s.spec.experts + 1});
  ports.push_back(ports::row_ints(s, Value::route_source, access));
  ports.push_back({.value = Value::route_row_of,
                   .access = access,
                   .dtype = DType::i32,
                   .rows_per_token = 1,
                   .cols = k});
}

void add_part_ports(const TaskShape& s, std::vector<Port>& ports) {
  ports.push_back({.value = Value::route_offsets,
                   .access = Access::read,
                   .dtype = DType::i32,
                   .extra_rows = s.spec.experts + 1});
  ports.push_back(ports::split(s, Access::read));
}

ConstView part_offsets(const BodyContext& c) {
  if (c.part.all()) return {};
  const auto [begin, end] = SplitView(c.in(Value::split), c.spec.experts).positions(c.part.place);
  return {c.in(Value::route_offsets).as<int32_t>() + begin, DType::i32, 1, end - begin + 1};
}

namespace {

class Dispatch final : public Body {
 public:
  std::vector<Port> ports(const TaskShape& s) const override {
    std::vector<Port> list;
    if (s.phase == Phase::backward) {
      add_backward_ports(s, list);
      return list;
    }
    if (s.part.all()) add_route_ports(s, list);
    if (s.part.all() && s.split_places > 0) return list;  // tokens are of the tasks at each place
    if (tokens_of_experts(s) == Value::normed_there) {
      list.push_back(ports::normed_sent(s, Access::read));
      list.push_back(ports::hidden(s, Value::normed_there, Access::write));
      if (s.decided)
        list.push_back(ports::split(s, Access::read));  // says whether anybody reads them
    } else if (s.copies_rows()) {
      if (!s.part.all()) {
        add_part_ports(s, list);
        list.push_back(ports::row_ints(s, Value::route_source, Access::read));
      }
      list.push_back(ports::hidden(s, Value::normed, Access::read));
      list.push_back(ports::routed(s, Value::rows, Access::write));
    }
    return list;
  }

  std::vector<BlockUse> blocks(const TaskShape&) const override { return {}; }
  ScratchNeed scratch(const TaskShape& s, const OpSet& ops) const override {
    return ops.row_scratch(s.tokens * s.spec.experts_per_token, s.spec.hidden);
  }

  void run(const BodyContext& c) const override {
    if (c.phase == Phase::backward) return backward(c);
    if (c.part.all()) route(c);
    if (c.has(Value::normed_there)) {
      c.ops.cast(c.stream, c.in(Value::normed_sent), c.out(Value::normed_there));
    }
    if (c.has(Value::rows)) {
      c.ops.permute(c.stream, c.in(Value::normed), row_vector(c.in(Value::route_source)),
                    part_offsets(c), c.out(Value::rows));
    }
  }

 private:
  static void add_backward_ports(const TaskShape& s, std::vector<Port>& list) {
    const int64_t k = s.spec.experts_per_token;
    const DType type = s.settings.activations;
    const ExpertSum sum(s);
    const auto choices = [&](Value value, DType of, Access access) {
      list.push_back(
          {.value = value, .access = access, .dtype = of, .rows_per_token = 1, .cols = k});
    };
    if (sum.begins) {
      add_routing_ports(s, Access::read, list);
    } else if (sum.rows) {
      choices(Value::route_row_of, DType::i32, Access::read);
      if (!s.part.all()) add_part_ports(s, list);
    }
    const Access rows = s.divides ? Access::update : Access::read;
    if (sum.rows) list.push_back(ports::routed(s, Value::d_rows, rows));
    if (s.divides) {
      list.push_back(ports::divided(Access::read));
      list.push_back(ports::hidden(s, Value::d_divided_rows, Access::read));
      list.push_back(ports::divided_weight(s, Access::read));
    }
    if (sum.begins) {
      list.push_back(
          {.value = Value::d_row_weight, .access = rows, .dtype = type, .rows_per_token = k});
      choices(Value::d_weight, type, Access::write);
    }
    if (sum.sends || sum.receives) {
      const Access access = sum.sends ? Access::write : Access::read;
      list.push_back(ports::hidden(s, Value::d_row_sum, access));
    }
    if (!sum.sends) {
      const Access access = sum.begins && !s.shared() ? Access::write : Access::update;
      list.push_back(ports::hidden(s, Value::d_normed, access));
    }
  }

  static void backward(const BodyContext& c) {
    if (c.has(Value::divided)) {
      add_divided(c, Value::d_divided_rows, Value::d_rows);
      add_divided(c, Value::d_divided_weight, Value::d_row_weight);
    }
    if (c.has(Value::d_weight)) {
      c.ops.to_token_order(c.stream, row_vector(c.in(Value::d_row_weight)), routing_of(c),
                           c.out(Value::d_weight));
    }
    // Beside the shared expert's part, where there is one.
    const bool here = c.has(Value::d_normed);
    const bool begins = here && c.has(Value::d_weight) && !c.shared();
    const View out = here ? c.out(Value::d_normed) : c.out(Value::d_row_sum);
    if (c.has(Value::d_rows)) {
      const RoutingView routing{part_offsets(c), {}, c.in(Value::route_row_of)};
      const ConstView base = here && !begins ? ConstView(out) : ConstView();
      c.ops.combine(c.stream, c.in(Value::d_rows), routing, {}, base, out);
    } else if (c.has(Value::d_row_sum)) {
      const ConstView sum = c.in(Value::d_row_sum);
      begins ? c.ops.cast(c.stream, sum, out) : c.ops.add(c.stream, out, sum, out);
    } else if (begins) {
      c.ops.clear(c.stream, out);  // the parts are added by tasks of their own
    }
  }

  static void add_route_ports(const TaskShape& s, std::vector<Port>& list) {
    const int64_t k = s.spec.experts_per_token;
    const DType type = s.settings.activations;
    add_routing_ports(s, Access::write, list);
    list.push_back({.value = Value::choice,
                    .access = Access::read,
                    .dtype = DType::i32,
                    .rows_per_token = 1,
                    .cols = k});
    if (s.split_places > 0) {
      list.push_back(ports::positions(s, Access::read));
    }
    if (s.pass != Pass::train) return;
    list.push_back({.value = Value::weight,
                    .access = Access::read,
                    .dtype = type,
                    .rows_per_token = 1,
                    .cols = k});
    list.push_back(
        {.value = Value::row_weight, .access = Access::write, .dtype = type, .rows_per_token = k});
  }

  static void route(const BodyContext& c) {
    const ConstView position =
        c.has(Value::expert_position)
            ? row_vector(c.in(Value::expert_position).slice(0, c.spec.experts))
            : ConstView();
    c.ops.route(c.stream, c.in(Value::choice), position, row_vector(c.out(Value::route_offsets)),
                row_vector(c.out(Value::route_source)), c.out(Value::route_row_of));
    if (c.pass == Pass::train) {
      c.ops.to_expert_order(c.stream, c.in(Value::weight), routing_of(c),
                            row_vector(c.out(Value::row_weight)));
    }
  }
};

}  // namespace

const Body& dispatch_body() {
  static const Dispatch body;
  return body;
}

}  // namespace hearth
