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
  rows.sent.resize(static_cast<size_t>(c.segments()));
  rows.received.resize(rows.sent.size());
  for (int64_t s = 0; s < c.segments(); ++s) {
    const auto at = static_cast<size_t>(s);
    if (c.has(Value::route_offsets)) {
      const auto* const own =
          rows_of_segment(c, Value::route_offsets, s, 0, c.spec.experts + 1).as<int32_t>();
      rows.sent[at] = {own[begin], own[end]};
    }
    if (c.has(Value::guest_offsets)) {
      rows.received[at] =
          rows_of_segment(c, Value::guest_offsets, s, behind, behind + 1).as<int32_t>()[0];
    }
  }
  return rows;
}

void add_guest_ports(const TaskShape& s, std::vector<Port>& list) {
  if (s.ranks.has_tokens()) {
    list.push_back({.value = Value::route_offsets,
                    .access = Access::read,
                    .dtype = DType::i32,
                    .extra_rows = s.spec.experts + 1});
  }
  if (s.ranks.serves(s.part.place)) list.push_back(ports::guest_offsets(s, Access::read));
}

void add_sent_ports(const TaskShape& s, const SentValue& sent, Access received,
                    std::vector<Port>& list) {
  const auto add = [&](Value value, Access access) {
    Port port = ports::rows(s, value, sent.cols, access);
    if (sent.is_number) port.dtype = DType::i32;
    list.push_back(port);
  };
  const bool is_guest = info_of(sent.from).of_part;  // what goes; else what comes is a guest's
  const bool own = s.ranks.has_tokens(), guest = s.ranks.serves(s.part.place);
  if (is_guest ? guest : own) add(sent.from, Access::read);
  if (is_guest ? own : guest) add(sent.to, received);
}

namespace {

class SendRows final : public Body {
 public:
  std::vector<Port> ports(const TaskShape& s) const override {
    const int64_t hidden = s.spec.hidden;
    std::vector<Port> list;
    add_guest_ports(s, list);
    const auto add = [&](const SentValue& sent) { add_sent_ports(s, sent, Access::write, list); };
    if (s.phase == Phase::backward) {
      add({Value::d_expert_out, Value::d_guest_out, hidden});
      add({Value::row_weight, Value::guest_weight, 1});
      return list;
    }
    add({Value::rows, Value::guest_rows, hidden});
    if (has_dropout(s.settings, s.pass)) {
      add({Value::route_source, Value::guest_source, 1, true});
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
        if (c.has(own)) out.push_back({rows.host, rows_of_segment(c, own, s, begin, end)});
        if (!c.has(of_guest)) continue;
        in.push_back(
            {rows.guest, rows_of_segment(c, of_guest, s, 0, rows.received[at], Access::write)});
      }
    }
    c.ranks->exchange(c.stream, RowsGo::out, out, in);
  }
};

}  // namespace

const Body& send_rows_body() {
  static const SendRows body;
  return body;
}

}  // namespace hearth
