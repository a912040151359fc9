#include <algorithm>

#include "gpu_kernels/kernels/router_rows.h"
#include "gpu_kernels/kernels/token_rows.h"
#include "gpu_kernels/ops/gpu_op_set.h"

namespace hearth::HEARTH_GPU {
namespace {

// The parts of a norm's weight gradient, and of what the router counts and sums over its experts.
ScratchNeed row_scratch(int64_t rows, int64_t width) {
  constexpr int64_t kMostExperts = 1024;
  const auto part = norm_part_rows(rows);
  const auto of_norm = sizeof(float) * static_cast<size_t>((rows + part - 1) / part * width);
  const auto of_experts = static_cast<size_t>(std::max(width, kMostExperts)) *
                          std::max(sizeof(int32_t) * static_cast<size_t>(kRouteChunks),
                                   2 * sizeof(double) * static_cast<size_t>(kSumParts));
  // Those of the experts are no more the more rows there are.
  return {std::max(of_norm, of_experts) + 2 * kArenaAlignment, 0};
}

}  // namespace

void add_row_scratch(OpTable& ops) { ops.row_scratch.add(row_scratch); }

}  // namespace hearth::HEARTH_GPU
