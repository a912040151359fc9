// norm: the gradient norm over all trained tensors, the clip factor and the finite flag. Sums are
// f64 a tensor, added in table order.
#include <algorithm>
#include <cmath>

#include "layers/kinds.h"

namespace hearth {

namespace {

class Norm final : public Body {
 public:
  std::vector<Port> ports(const TaskShape& s) const override {
    const auto tensors = static_cast<int64_t>(s.table.tensors().size());
    return {{Value::tensor_norms, Access::temporary, DType::f64, 0, tensors, 1, 0},
            ports::scalar(Value::grad_norm, Access::write),
            ports::scalar(Value::clip, Access::write),
            ports::scalar(Value::finite, Access::write)};
  }

  std::vector<BlockUse> blocks(const TaskShape& s) const override {
    return {{0, static_cast<BlockId>(s.table.blocks().size()), BlockAccess::read_gradient}};
  }
  ScratchNeed scratch(const TaskShape& s, const OpSet& ops) const override {
    int64_t largest = 0;
    for (const Tensor& t : s.table.tensors()) largest = std::max(largest, t.size());
    return ops.row_scratch(1, largest);
  }

  void run(const BodyContext& c) const override {
    const View norms = c.out(Value::tensor_norms);
    const auto tensors = static_cast<TensorId>(c.table.tensors().size());
    for (TensorId id = 0; id < tensors; ++id) {
      const View gradient = c.table.gradient(id);
      if (gradient) c.ops.sum_squares(c.stream, gradient, norms.slice(id, 1));
    }
    double sum = 0;
    for (TensorId id = 0; id < tensors; ++id) {
      if (c.table.gradient(id)) sum += norms.as<double>()[id];
    }
    const double norm = std::sqrt(sum);
    const double limit = c.settings.max_grad_norm;
    // torch.nn.utils.clip_grad_norm_: the factor is limit / (norm + 1e-6), at most 1.
    const double clip = limit > 0 ? std::min(1.0, limit / (norm + 1e-6)) : 1.0;
    c.set_scalar(Value::grad_norm, norm);
    c.set_scalar(Value::clip, clip);
    c.set_scalar(Value::finite, std::isfinite(norm) ? 1 : 0);
  }
};

}  // namespace

const Body& norm_body() {
  static const Norm body;
  return body;
}

}  // namespace hearth
