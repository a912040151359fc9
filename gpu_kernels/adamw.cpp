// All runs of an update in one launch, as far as one table takes them: a layer has many tensors, of
// which the smallest would not fill a GPU.
#include "gpu_kernels/adamw_runs.h"

#include <algorithm>
#include <vector>

#include "device/cuda_stream.h"
#include "gpu_kernels/gpu_op_set.h"
#include "gpu_kernels/gpu_stream.h"
#include "gpu_kernels/products.h"
#include "gpu_kernels/shapes.h"

namespace hearth::HEARTH_GPU {
namespace {

// As many as one table takes.
constexpr size_t kRunsTogether = CudaStream::kUploadBytes / sizeof(AdamWRun);

AdamWRun run_of(const AdamWTensors& t, int64_t first_block) {
  for (const ConstView& v : {t.gradient, t.moment1, t.moment2}) {
    HEARTH_CHECK(same_shape(v, t.master) && v.contiguous(), "adamw: shapes");
  }
  HEARTH_CHECK(t.master.contiguous() &&
                   (!t.working || (same_shape(t.working, t.master) && t.working.contiguous())),
               "adamw: shapes");
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

}  // namespace

void GpuOps::adamw(Stream& stream, const AdamWOptions& options,
                   std::span<const AdamWTensors> tensors) const {
  HEARTH_CHECK(options.step >= 1, "adamw: steps count from 1");
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

}  // namespace hearth::HEARTH_GPU
