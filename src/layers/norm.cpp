// norm: the sums of squares of the gradients at one place, f64 a tensor, in table order. The task's
// layer is the number of the place; `clip` brings the places together. Of several ranks each fills
// those of the tensors that it owns, and `gather` brings the ranks together.
#include <algorithm>

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

  size_t lists(const TaskShape& s) const override {
    return list_bytes<ConstView>(trained(s).first);
  }

  void run(const BodyContext& c) const override {
    const View norms = row_vector(c.out(Value::tensor_norms));
    auto gradients = list_of<ConstView>(c, norms.cols);  // empty: another rank owns the tensor
    for (TensorId id = 0; id < static_cast<TensorId>(c.table.tensors().size()); ++id) {
      if (c.table.block(c.table.tensor(id).block).place != c.place) continue;
      if (!c.table.tensor(id).trainable) continue;
      const bool owned = c.table.block(c.table.tensor(id).block).owned;
      gradients.push_back(owned ? c.table.gradient(id) : View());
    }
    HEARTH_CHECK(std::ssize(gradients) == norms.cols, "norm: gradients of trained tensors");
    for (size_t begin = 0; begin < gradients.size();) {  // each run of owned tensors
      size_t end = begin;
      while (end < gradients.size() && gradients[end]) ++end;
      if (end > begin) {
        double* const first = static_cast<double*>(norms.raw()) + begin;
        const auto count = static_cast<int64_t>(end - begin);
        c.ops.sum_squares(c.stream, std::span(gradients).subspan(begin, end - begin),
                          {first, DType::f64, 1, count});
      }
      begin = std::max(end, begin + 1);
    }
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
