// foretell: hands samples of what enters a layer to the rule that will divide its experts. Runs on the
// host while a device computes the attention of the layer, so that loads begin meanwhile. Writes
// nothing that a task reads.
#include "layers/kinds.h"
#include "layers/router_sample.h"
#include "layers/split.h"

namespace hearth {

namespace {

class Foretell final : public Body {
 public:
  std::vector<Port> ports(const TaskShape& s) const override {
    return {layer_sample_port(s, Access::read)};
  }
  std::vector<BlockUse> blocks(const TaskShape&) const override { return {}; }
  ScratchNeed scratch(const TaskShape&, const OpSet&) const override { return {}; }

  void run(const BodyContext& c) const override {
    HEARTH_CHECK(c.rule != nullptr, "foretell: no rule that divides experts");
    std::vector<LayerSample> samples;
    for (int64_t s = 0; s < c.segments(); ++s) {
      samples.push_back({tokens_of_segment(c, s), sampled_rows(c, Value::sampled_residual, s)});
    }
    c.rule->entered(c.layer, samples);
  }
};

}  // namespace

const Body& foretell_body() {
  static const Foretell body;
  return body;
}

}  // namespace hearth
