// decide: which place computes which experts of a layer. Its place is the host, whose memory the
// split is in; what reads an expert's position elsewhere gets a copy.
#include "layers/kinds.h"
#include "layers/split.h"

namespace hearth {

namespace {

class Decide final : public Body {
 public:
  std::vector<Port> ports(const TaskShape& s) const override {
    return {ports::split(s, Access::write),
            {.value = Value::expert_position,
             .access = Access::write,
             .dtype = DType::i32,
             .extra_rows = s.spec.experts}};
  }
  std::vector<BlockUse> blocks(const TaskShape&) const override { return {}; }
  ScratchNeed scratch(const TaskShape&, const OpSet&) const override { return {}; }

  void run(const BodyContext& c) const override {
    const View split = c.out(Value::split), position = c.out(Value::expert_position);
    for (int64_t s = 0; s < c.segments(); ++s) {
      const auto of_segment = [&](View v, Value value, int64_t count) {
        return std::span(v.as<int32_t>() + s * c.stride(value), static_cast<size_t>(count));
      };
      const int64_t before = (c.segments() - 1) * c.stride(Value::split);
      split_by_home(c.table, c.layer, of_segment(split, Value::split, split.rows - before),
                    of_segment(position, Value::expert_position, c.spec.experts));
    }
  }
};

}  // namespace

const Body& decide_body() {
  static const Decide body;
  return body;
}

}  // namespace hearth
