// All runs of an update in one launch, as far as one table takes them: a layer has many tensors, of
// which the smallest would not fill a GPU.
#include "gpu_kernels/kernels/adamw_runs.h"

#include <algorithm>
#include <vector>

#include "device/cuda_stream.h"
#include "gpu_kernels/gpu_stream.h"
#include "gpu_kernels/kernels/matrix.h"
#include "gpu_kernels/ops/gpu_op_set.h"
#include "gpu_kernels/ops/products.h"

namespace hearth::HEARTH_GPU {
namespace {

// As many as one table takes.
constexpr size_t kRunsTogether = CudaStream::kUploadBytes / sizeof(AdamWRun);

AdamWRun run_of(const AdamWTensors& t, int64_t first_block) {
  return {.gradient = t.gradient.as<float>(),
          .master = t.master.as<float>(),
          .moment1 = t.moment1.as<float>(),
          .moment2 = t.moment2.as<float>(),
          .working = t.working.raw(),
          .size = t.master.size(),
          .first_block = first_block,
          .stored = t.working ? stored_of(t.working.dtype) : Stored::f32,
          .quads = in_quads({t.gradient, t.master, t.moment1, t.moment2, t.working})};
}

void adamw(Stream& stream, const AdamWOptions& options, std::span<const AdamWTensors> tensors) {
  GpuStream gpu = gpu_stream(stream);
  for (size_t first = 0; first < tensors.size(); first += kRunsTogether) {
    AdamWArguments a;
    a.step = adamw_step(options);
    std::vector<AdamWRun> runs;
    for (const AdamWTensors& t :
         tensors.subspan(first, std::min(kRunsTogether, tensors.size() - first))) {
      runs.push_back(run_of(t, a.blocks));
      a.blocks += (runs.back().size + kAdamWBlock - 1) / kAdamWBlock;
    }
    a.runs = gpu.upload(runs);
    a.count = std::ssize(runs);
    adamw_on(gpu.handle(), a);
  }
}

}  // namespace

void add_adamw(OpTable& ops) { ops.adamw.add(GpuOps::kName, adamw); }

}  // namespace hearth::HEARTH_GPU
