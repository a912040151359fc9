// clip: the gradient norm over all trained tensors, the clip factor and the finite flag. Runs on
// the host. Sums of all places are added in table order, so placement changes no bit of the norm.
#include <algorithm>
#include <cmath>
#include <limits>

#include "layers/kinds.h"

namespace hearth {

namespace {

// AdamW works in f32. Where that holds neither the norm nor the squares of what clipping leaves,
// moments would become infinite and weights stay for ever: no step either.
bool is_usable(double norm, double clip) {
  constexpr double most = std::numeric_limits<float>::max();
  return norm <= most && norm * clip * norm * clip <= most;  // false for NaN
}

class Clip final : public Body {
 public:
  std::vector<Port> ports(const TaskShape& s) const override {
    std::vector<Port> list = norm_ports(s, Access::read);
    list.push_back(ports::scalar(Value::grad_norm, Access::write));
    list.push_back(ports::scalar(Value::clip, Access::write));
    list.push_back(ports::scalar(Value::finite, Access::write));
    return list;
  }

  std::vector<BlockUse> blocks(const TaskShape&) const override { return {}; }
  ScratchNeed scratch(const TaskShape&, const OpSet&) const override { return {}; }
  size_t lists(const TaskShape& s) const override { return each_norm_bytes(s.table); }

  void run(const BodyContext& c) const override {
    double sum = 0;
    each_norm(c, [&](const double& norm) { sum += norm; });
    const double norm = std::sqrt(sum);
    const double limit = c.settings.max_grad_norm;
    // torch.nn.utils.clip_grad_norm_: the factor is limit / (norm + 1e-6), at most 1.
    const double clip = limit > 0 ? std::min(1.0, limit / (norm + 1e-6)) : 1.0;
    c.set_scalar(Value::grad_norm, norm);
    c.set_scalar(Value::clip, clip);
    c.set_scalar(Value::finite, is_usable(norm, clip) ? 1 : 0);
  }
};

}  // namespace

const Body& clip_body() {
  static const Clip body;
  return body;
}

}  // namespace hearth
