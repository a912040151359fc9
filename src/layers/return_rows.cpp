// return_rows: if ranks share the experts, what became of the guests' rows goes back to their rank, and
// what another rank has made of this one's rows comes here, to where they lie among all: outputs in
// forward, in backward gradients of rows and of their weights.
#include "layers/kinds.h"

namespace hearth {

namespace {

class ReturnRows final : public Body {
 public:
  std::vector<Port> ports(const TaskShape& s) const override {
    const int64_t hidden = s.spec.hidden;
    std::vector<Port> list;
    add_guest_ports(s, list);
    // The first to write is this rank's own experts task, if it has experts, else the first round.
    const bool is_first = !s.ranks.has_experts() && s.part.place == s.ranks.guest_of(1);
    const Access received = is_first ? Access::write : Access::update;
    const auto add = [&](const SentValue& sent) { add_sent_ports(s, sent, received, list); };
    if (s.phase == Phase::backward) {
      add({Value::d_guest_rows, Value::d_rows, hidden});
      add({Value::d_guest_row_weight, Value::d_row_weight, 1});
    } else {
      add({Value::guest_out, Value::expert_out, hidden});
    }
    return list;
  }

  std::vector<BlockUse> blocks(const TaskShape&) const override { return {}; }
  ScratchNeed scratch(const TaskShape&, const OpSet&) const override { return {}; }

  void run(const BodyContext& c) const override {
    static constexpr std::pair<Value, Value> kReturned[] = {
        {Value::d_guest_rows, Value::d_rows},
        {Value::d_guest_row_weight, Value::d_row_weight},
        {Value::guest_out, Value::expert_out},
    };
    const GuestRows rows = guest_rows_of(c);
    std::vector<SentRows> out;
    std::vector<ReceivedRows> in;
    for (int64_t s = 0; s < c.segments(); ++s) {
      const auto at = static_cast<size_t>(s);
      const auto [begin, end] = rows.sent[at];
      for (const auto& [of_guest, own] : kReturned) {
        if (c.has(of_guest)) {
          out.push_back({rows.guest, rows_of_segment(c, of_guest, s, 0, rows.received[at])});
        }
        if (c.has(own)) {
          in.push_back({rows.host, rows_of_segment(c, own, s, begin, end, Access::update)});
        }
      }
    }
    c.ranks->exchange(c.stream, RowsGo::back, out, in);
  }
};

}  // namespace

const Body& return_rows_body() {
  static const ReturnRows body;
  return body;
}

}  // namespace hearth
