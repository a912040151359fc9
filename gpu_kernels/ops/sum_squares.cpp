#include <algorithm>
#include <vector>

#include "device/cuda_stream.h"
#include "gpu_kernels/gpu_stream.h"
#include "gpu_kernels/kernels/matrix.h"
#include "gpu_kernels/kernels/square_sums.h"
#include "gpu_kernels/ops/gpu_op_set.h"

namespace hearth::HEARTH_GPU {
namespace {

// As many as one table takes.
constexpr size_t kViewsTogether = CudaStream::kUploadBytes / sizeof(SquaresView);

int64_t square_blocks(int64_t size) { return (size + kSquareBlock - 1) / kSquareBlock; }

void sum_squares(Stream& stream, std::span<const ConstView> x, View out) {
  GpuStream gpu = gpu_stream(stream);
  auto* sums = out.as<double>();
  for (size_t first = 0; first < x.size(); first += kViewsTogether) {
    const auto some = x.subspan(first, std::min(kViewsTogether, x.size() - first));
    SquaresArguments a;
    std::vector<SquaresView> views;
    for (const ConstView& v : some) {
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

}  // namespace

void add_sum_squares(OpTable& ops) { ops.sum_squares.add(GpuOps::kName, sum_squares); }

}  // namespace hearth::HEARTH_GPU
