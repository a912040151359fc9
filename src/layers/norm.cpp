// norm: the sums of squares of the gradients at one place, f64 a tensor, in table order. Several tasks
// may divide the tensors of a place. The task's layer is its number (norm_number); `clip` brings all
// together. Of several ranks each fills those of the tensors that it owns, and `gather` brings the ranks
// together.
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
             .extra_rows = std::ssize(norm_tensors(s.table, s.place, s.norm))}};
  }

  std::vector<BlockUse> blocks(const TaskShape& s) const override {
    std::vector<BlockUse> uses;
    for (const TensorId id : norm_tensors(s.table, s.place, s.norm)) {
      const BlockId block = s.table.tensor(id).block;
      if (uses.empty() || uses.back().end < block) {
        uses.push_back({block, block, BlockAccess::read_gradient});
      }
      uses.back().end = block + 1;
    }
    return uses;
  }

  ScratchNeed scratch(const TaskShape& s, const OpSet& ops) const override {
    int64_t elements = 0;
    const std::vector<TensorId> tensors = norm_tensors(s.table, s.place, s.norm);
    for (const TensorId id : tensors) elements += s.table.tensor(id).size();
    return ops.sum_squares_scratch(std::ssize(tensors), elements);
  }

  size_t lists(const TaskShape& s) const override {
    return list_bytes<ConstView>(std::ssize(norm_tensors(s.table, s.place, s.norm)));
  }

  void run(const BodyContext& c) const override {
    const View norms = row_vector(c.out(Value::tensor_norms));
    auto gradients = list_of<ConstView>(c, norms.cols);  // empty: another rank owns the tensor
    for (const BlockUse& use : c.blocks) {
      const TensorId last = c.table.block(use.end - 1).end;
      for (TensorId id = c.table.block(use.begin).begin; id < last; ++id) {
        if (!c.table.tensor(id).trainable) continue;
        const bool owned = c.table.block(c.table.tensor(id).block).owned;
        gradients.push_back(owned ? c.table.gradient(id) : View());
      }
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
};

}  // namespace

const Body& norm_body() {
  static const Norm body;
  return body;
}

}  // namespace hearth
