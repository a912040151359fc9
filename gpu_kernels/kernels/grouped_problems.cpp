#include "gpu_kernels/kernels/grouped_problems.h"

namespace hearth::HEARTH_GPU {

GroupedProblems take_grouped_problems(Scratch& scratch, int64_t groups) {
  GroupedProblems to;
  to.shape = scratch.take<GroupedShape>(groups);
  to.a = scratch.take<const void*>(groups);
  to.b = scratch.take<const void*>(groups);
  to.c = scratch.take<float*>(groups);
  to.a_stride = scratch.take<int64_t>(groups);
  to.b_stride = scratch.take<int64_t>(groups);
  to.c_stride = scratch.take<int64_t>(groups);
  return to;
}

size_t grouped_problem_bytes(int64_t groups) {
  const auto n = static_cast<size_t>(groups);
  return align_up(n * sizeof(GroupedShape)) + 3 * align_up(n * sizeof(void*)) +
         3 * align_up(n * sizeof(int64_t)) + kArenaAlignment;
}

GroupedProblemArgs grouped_problem_args(const GroupedProduct& product, const ProductGroup* groups,
                                        const GroupedProblems& to) {
  GroupedProblemArgs args;
  args.form = product.form;
  args.segment = product.segment;
  args.group_count = static_cast<int32_t>(product.groups.size());
  args.groups = groups;
  args.offsets = product.offsets;
  args.offset_step = product.offset_step;
  args.a = product.a;
  args.b = product.b;
  args.c = product.c;
  args.c_stride = product.c_stride;
  args.to = to;
  return args;
}

}  // namespace hearth::HEARTH_GPU
