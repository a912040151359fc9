#include "gpu_kernels/gpu_stream.h"
#include "gpu_kernels/kernels/clear_rows.h"
#include "gpu_kernels/ops/gpu_op_set.h"

namespace hearth::HEARTH_GPU {
namespace {

void clear(Stream& stream, View x) {
  const auto size = static_cast<int64_t>(size_of(x.dtype));
  ByteRows rows{x.raw(), x.rows, x.cols * size, x.stride * size};
  if (x.contiguous()) {
    rows.bytes *= rows.rows;
    rows.stride = rows.bytes;
    rows.rows = 1;
  }
  clear_on(gpu_stream(stream).handle(), rows);
}

}  // namespace

void add_clear(OpTable& ops) { ops.clear.add(GpuOps::kName, clear); }

}  // namespace hearth::HEARTH_GPU
