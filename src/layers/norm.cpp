// norm: the sums of squares of the gradients at one place, f64 a tensor, in table order. The task's
// layer is the number of the place; `clip` brings the places together.
#include "layers/kinds.h"

namespace hearth {

namespace {

class Norm final : public Body {
 public:
  std::vector<Port> ports(const TaskShape& s) const override {
    return {{.value = Value::tensor_norms,
             .access = Access::write,
             .dtype = DType::f64,
             .extra_rows = trained(s).first}};
  }

  std::vector<BlockUse> blocks(const TaskShape& s) const override {
    std::vector<BlockUse> uses;
    const auto all = static_cast<BlockId>(s.table.blocks().size());
    for (const auto& [begin, end] : blocks_at(s.table, 0, all, s.place)) {
      uses.push_back({begin, end, BlockAccess::read_gradient});
    }
    return uses;
  }

  ScratchNeed scratch(const TaskShape& s, const OpSet& ops) const override {
    const auto [tensors, elements] = trained(s);
    return ops.sum_squares_scratch(tensors, elements);
  }

  void run(const BodyContext& c) const override {
    std::vector<ConstView> gradients;
    for (TensorId id = 0; id < static_cast<TensorId>(c.table.tensors().size()); ++id) {
      if (c.table.block(c.table.tensor(id).block).place != c.place) continue;
      if (const View gradient = c.table.gradient(id)) gradients.push_back(gradient);
    }
    const View norms = row_vector(c.out(Value::tensor_norms));
    HEARTH_CHECK(std::ssize(gradients) == norms.cols, "norm: gradients of trained tensors");
    c.ops.sum_squares(c.stream, gradients, norms);
  }

 private:
  /// Trained tensors of the task's place, and their elements.
  static std::pair<int64_t, int64_t> trained(const TaskShape& s) {
    std::pair<int64_t, int64_t> sum;
    for (const Tensor& t : s.table.tensors()) {
      if (!t.trainable || s.table.block(t.block).place != s.place) continue;
      ++sum.first;
      sum.second += t.size();
    }
    return sum;
  }
};

}  // namespace

const Body& norm_body() {
  static const Norm body;
  return body;
}

}  // namespace hearth
