// return_rows: if ranks share the experts, what became of the guests' rows goes back to their rank, and
// what another rank has made of this one's rows comes here, to where they lie among all: outputs in
// forward, in backward gradients of rows and of their weights.
#include "layers/guest_rows.h"
#include "layers/kinds.h"

namespace hearth {

namespace {

std::vector<SentValue> rows_back(Phase phase, int64_t hidden) {
  if (phase == Phase::backward) {
    return {{Value::d_guest_rows, Value::d_rows, hidden},
            {Value::d_guest_row_weight, Value::d_row_weight}};
  }
  return {{Value::guest_out, Value::expert_out, hidden}};
}

class ReturnRows final : public Body {
 public:
  std::vector<Port> ports(const TaskShape& s) const override {
    // The first to write is this rank's own experts task, if it has experts, else the first round.
    const bool is_first = !s.ranks.has_experts() && s.part.place == s.ranks.guest_of(1);
    return exchange_ports(s, rows_back(s.phase, s.spec.hidden),
                          is_first ? Access::write : Access::update);
  }

  std::vector<BlockUse> blocks(const TaskShape&) const override { return {}; }
  ScratchNeed scratch(const TaskShape&, const OpSet&) const override { return {}; }

  void run(const BodyContext& c) const override {
    exchange_rows(c, RowsGo::back, rows_back(c.phase, c.spec.hidden));
  }
};

}  // namespace

const Body& return_rows_body() {
  static const ReturnRows body;
  return body;
}

}  // namespace hearth
