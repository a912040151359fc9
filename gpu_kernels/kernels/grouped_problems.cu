// Tables of the groups' products for libraries.
#include "gpu_kernels/kernels/grouped_problems.h"
#include "gpu_kernels/launch.h"

namespace hearth::HEARTH_GPU {
namespace {

constexpr int kThreads = 128;
constexpr int64_t kBytes = 2;  // of an operand's element, bf16

__device__ inline const void* at_row(const Operand& x, int64_t row) {
  return static_cast<const char*>(x.data) + row * x.stride * kBytes;
}

/// A thread a group. A product with an empty side is left out by the shape 0, 0, 0: libraries count
/// no tile for it. Its depth alone being 0, as in wgrad of an expert without tokens, would leave
/// tiles without a single step, which CUTLASS before 4.3 does not get right.
__global__ void __launch_bounds__(kThreads)
    grouped_problems_kernel(const __grid_constant__ GroupedProblemArgs args) {
  const int g = static_cast<int>(blockIdx.x * kThreads + threadIdx.x);
  if (g >= args.group_count) return;
  const ProductGroup& group = args.groups[g];
  const int32_t* const offsets = args.offsets + g * args.offset_step;
  const int first = offsets[0], rows = offsets[1] - first;
  const bool wgrad = args.form == Form::wgrad;
  GroupedShape shape{wgrad ? group.rows : rows, group.columns,
                     wgrad ? rows : group.depth[args.segment]};
  if (shape.rows <= 0 || shape.columns <= 0 || shape.depth <= 0) shape = {};
  args.to.shape[g] = shape;
  args.to.a[g] = at_row(args.a, first);
  args.to.a_stride[g] = args.a.stride;
  if (wgrad) {
    args.to.b[g] = at_row(args.b, first);
    args.to.b_stride[g] = args.b.stride;
    args.to.c[g] = group.c;
    args.to.c_stride[g] = group.c_stride;
  } else {
    args.to.b[g] = group.weight[args.segment];
    args.to.b_stride[g] = group.weight_stride[args.segment];
    args.to.c[g] = args.c + first * args.c_stride;
    args.to.c_stride[g] = args.c_stride;
  }
}

}  // namespace

void grouped_problems_on(void* stream, const GroupedProblemArgs& args) {
  if (args.group_count == 0) return;
  launch(grouped_problems_kernel, parts_over(args.group_count, kThreads), kThreads, 0, stream,
         args);
}

}  // namespace hearth::HEARTH_GPU
