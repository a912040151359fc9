// sample: evenly spaced rows of what enters a layer, where its dense parts are. They cross to the
// host, for `foretell`.
#include "layers/kinds.h"
#include "layers/router_sample.h"

namespace hearth {

namespace {

class Sample final : public Body {
 public:
  std::vector<Port> ports(const TaskShape& s) const override {
    return {ports::hidden(s, Value::residual, Access::read), layer_sample_port(s, Access::write)};
  }
  std::vector<BlockUse> blocks(const TaskShape&) const override { return {}; }
  ScratchNeed scratch(const TaskShape&, const OpSet&) const override { return {}; }

  void run(const BodyContext& c) const override {
    take_sample(c, c.in(Value::residual), c.out(Value::sampled_residual));
  }
};

}  // namespace

const Body& sample_body() {
  static const Sample body;
  return body;
}

}  // namespace hearth
