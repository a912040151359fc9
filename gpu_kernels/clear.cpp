#include "gpu_kernels/clear_rows.h"
#include "gpu_kernels/gpu_op_set.h"
#include "gpu_kernels/gpu_stream.h"

namespace hearth::HEARTH_GPU {

void GpuOps::clear(Stream& stream, View x) const {
  const auto size = static_cast<int64_t>(size_of(x.dtype));
  ByteRows rows{x.raw(), x.rows, x.cols * size, x.stride * size};
  if (x.contiguous()) {
    rows.bytes *= rows.rows;
    rows.stride = rows.bytes;
    rows.rows = 1;
  }
  clear_on(gpu_stream(stream).handle(), rows);
}

}  // namespace hearth::HEARTH_GPU
