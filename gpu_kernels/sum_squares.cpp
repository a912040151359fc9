#include <algorithm>
#include <vector>

#include "device/cuda_stream.h"
#include "gpu_kernels/gpu_op_set.h"
#include "gpu_kernels/gpu_stream.h"
#include "gpu_kernels/shapes.h"
#include "gpu_kernels/square_sums.h"

namespace hearth::HEARTH_GPU {
namespace {

// As many as one table takes.
constexpr size_t kViewsTogether = CudaStream::kUploadBytes / sizeof(SquaresView);

int64_t square_blocks(int64_t size) { return (size + kSquareBlock - 1) / kSquareBlock; }

}  // namespace

void GpuOps::sum_squares(Stream& stream, std::span<const ConstView> x, View out) const {
  HEARTH_CHECK(is_shaped(out, 1, std::ssize(x)), "sum_squares: shapes");
  GpuStream gpu = gpu_stream(stream);
  auto* sums = out.as<double>();
  for (size_t first = 0; first < x.size(); first += kViewsTogether) {
    const auto some = x.subspan(first, std::min(kViewsTogether, x.size() - first));
    SquaresArguments a;
    std::vector<SquaresView> views;
    for (const ConstView& v : some) {
      HEARTH_CHECK(v.contiguous(), "sum_squares: views are contiguous");
      views.push_back({v.as<float>(), v.size(), a.blocks});
      a.blocks += square_blocks(v.size());
    }
    Scratch::Frame frame(gpu.scratch());
    a.views = gpu.upload(views);
    a.count = std::ssize(views);
    a.partial = gpu.scratch().take<double>(a.blocks);
    a.out = sums + first;
    sum_squares_on(gpu.handle(), a);
  }
}

ScratchNeed GpuOps::sum_squares_scratch(int64_t views, int64_t elements) const {
  const int64_t blocks = elements / kSquareBlock + views;
  return {align_up(static_cast<size_t>(blocks) * sizeof(double)) + kArenaAlignment, 0};
}

}  // namespace hearth::HEARTH_GPU
