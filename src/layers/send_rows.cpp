// send_rows: if ranks share the experts, rows of this rank go to the rank that computes them, and the
// rows of another rank, the guests of the task's part, come here. Forward and recompute send the rows;
// backward sends the gradients of what became of them, and their weights.
#include "layers/kinds.h"
#include "layers/linear.h"

namespace hearth {

GuestRows guest_rows_of(const BodyContext& c) {
  const ExpertRanks ranks = c.ranks->experts();
  GuestRows rows{.guest = c.part.place, .host = ranks.host_of(c.part.place)};
  const auto [first, last] = ranks.own(c.spec.experts);
  const auto [begin, end] = ranks.of(rows.host, c.spec.experts);
  const int64_t behind = (rows.guest + 1) * (last - first + 1) - 1;
  for (int64_t s = 0; s < c.segments(); ++s) {
    const auto* const own =
        rows_of_segment(c, Value::route_offsets, s, 0, c.spec.experts + 1).as<int32_t>();
    rows.sent.emplace_back(own[begin], own[end]);
    rows.received.push_back(
        rows_of_segment(c, Value::guest_offsets, s, behind, behind + 1).as<int32_t>()[0]);
  }
  return rows;
}

void add_guest_ports(const TaskShape& s, std::vector<Port>& list) {
  list.push_back({.value = Value::route_offsets,
                  .access = Access::read,
                  .dtype = DType::i32,
                  .extra_rows = s.spec.experts + 1});
  list.push_back(ports::guest_offsets(s, Access::read));
}

namespace {

class SendRows final : public Body {
 public:
  std::vector<Port> ports(const TaskShape& s) const override {
    const int64_t hidden = s.spec.hidden;
    std::vector<Port> list;
    add_guest_ports(s, list);
    if (s.phase == Phase::backward) {
      list.push_back(ports::rows(s, Value::d_expert_out, hidden, Access::read));
      list.push_back(ports::rows(s, Value::d_guest_out, hidden, Access::write));
      list.push_back(ports::rows(s, Value::row_weight, 1, Access::read));
      list.push_back(ports::rows(s, Value::guest_weight, 1, Access::write));
      return list;
    }
    list.push_back(ports::rows(s, Value::rows, hidden, Access::read));
    list.push_back(ports::rows(s, Value::guest_rows, hidden, Access::write));
    if (has_dropout(s.settings, s.pass)) {
      list.push_back(ports::row_numbers(s, Value::route_source, Access::read));
      list.push_back(ports::row_numbers(s, Value::guest_source, Access::write));
    }
    return list;
  }

  std::vector<BlockUse> blocks(const TaskShape&) const override { return {}; }
  ScratchNeed scratch(const TaskShape&, const OpSet&) const override { return {}; }

  void run(const BodyContext& c) const override {
    static constexpr std::pair<Value, Value> kSent[] = {
        {Value::d_expert_out, Value::d_guest_out},
        {Value::row_weight, Value::guest_weight},
        {Value::rows, Value::guest_rows},
        {Value::route_source, Value::guest_source},
    };
    const GuestRows rows = guest_rows_of(c);
    std::vector<SentRows> out;
    std::vector<ReceivedRows> in;
    for (int64_t s = 0; s < c.segments(); ++s) {
      const auto at = static_cast<size_t>(s);
      const auto [begin, end] = rows.sent[at];
      for (const auto& [own, of_guest] : kSent) {
        if (!c.has(own)) continue;
        out.push_back({rows.host, rows_of_segment(c, own, s, begin, end)});
        in.push_back(
            {rows.guest, rows_of_segment(c, of_guest, s, 0, rows.received[at], Access::write)});
      }
    }
    c.ranks->exchange(c.stream, out, in);
  }
};

}  // namespace

const Body& send_rows_body() {
  static const SendRows body;
  return body;
}

}  // namespace hearth
