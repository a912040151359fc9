// send_rows: if ranks share the experts, rows of this rank go to the rank that computes them, and the
// rows of another rank, the guests of the task's part, come here. Forward and recompute send the rows;
// backward sends the gradients of what became of them, and their weights.
#include "layers/guest_rows.h"
#include "layers/kinds.h"
#include "layers/linear.h"

namespace hearth {

namespace {

std::vector<SentValue> rows_out(Phase phase, int64_t hidden, bool dropout) {
  if (phase == Phase::backward) {
    return {{Value::d_expert_out, Value::d_guest_out, hidden},
            {Value::row_weight, Value::guest_weight}};
  }
  std::vector<SentValue> values = {{Value::rows, Value::guest_rows, hidden}};
  if (dropout) values.push_back({Value::route_source, Value::guest_source, 1, true});
  return values;
}

class SendRows final : public Body {
 public:
  std::vector<Port> ports(const TaskShape& s) const override {
    const bool dropout = has_dropout(s.settings, s.pass);
    return exchange_ports(s, rows_out(s.phase, s.spec.hidden, dropout), Access::write);
  }

  std::vector<BlockUse> blocks(const TaskShape&) const override { return {}; }
  ScratchNeed scratch(const TaskShape&, const OpSet&) const override { return {}; }

  void run(const BodyContext& c) const override {
    const bool dropout = has_dropout(c.settings, c.pass);
    exchange_rows(c, RowsGo::out, rows_out(c.phase, c.spec.hidden, dropout));
  }
};

}  // namespace

const Body& send_rows_body() {
  static const SendRows body;
  return body;
}

}  // namespace hearth
