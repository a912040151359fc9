// norm: the gradient norm over all trained tensors, the clip factor and the finite flag. Sums are
// f64 a tensor, added in table order.
#include <algorithm>
#include <cmath>
#include <limits>

#include "base/planted.h"
#include "layers/kinds.h"

namespace hearth {

namespace {

double with_fault(double norm) {
  if (planted("infinite-norm")) return HUGE_VAL;
  if (planted("norm-beyond-f32")) return 1e39;
  return planted("square-beyond-f32") ? 1e25 : norm;
}

// AdamW works in f32. Where that holds neither the norm nor the squares of what clipping leaves,
// moments would become infinite and weights stay for ever: no step either.
bool is_usable(double norm, double clip) {
  constexpr double most = std::numeric_limits<float>::max();
  return norm <= most && norm * clip * norm * clip <= most;  // false for NaN
}

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
    int64_t elements = 0;
    for (const Tensor& t : s.table.tensors()) elements += t.size();
    return ops.sum_squares_scratch(std::ssize(s.table.tensors()), elements);
  }

  void run(const BodyContext& c) const override {
    std::vector<ConstView> gradients;
    for (TensorId id = 0; id < static_cast<TensorId>(c.table.tensors().size()); ++id) {
      if (const View gradient = c.table.gradient(id)) gradients.push_back(gradient);
    }
    const View norms = row_vector(c.out(Value::tensor_norms).slice(0, std::ssize(gradients)));
    c.ops.sum_squares(c.stream, gradients, norms);
    double sum = 0;
    for (int64_t i = 0; i < norms.cols; ++i) sum += norms.as<double>()[i];
    const double norm = with_fault(std::sqrt(sum));
    const double limit = c.settings.max_grad_norm;
    // torch.nn.utils.clip_grad_norm_: the factor is limit / (norm + 1e-6), at most 1.
    const double clip = limit > 0 ? std::min(1.0, limit / (norm + 1e-6)) : 1.0;
    c.set_scalar(Value::grad_norm, norm);
    c.set_scalar(Value::clip, clip);
    c.set_scalar(Value::finite, is_usable(norm, clip) ? 1 : 0);
  }
};

}  // namespace

const Body& norm_body() {
  static const Norm body;
  return body;
}

}  // namespace hearth
