// Products that a library computes in place of our kernels.
#pragma once

#include <functional>
#include <span>

#include "gpu_kernels/gpu_stream.h"
#include "gpu_kernels/product.h"

namespace hearth::HEARTH_GPU {

/// One segment of a product, as `Products` has it: args.a and args.c, and the groups in host memory.
struct SegmentProduct {
  Form form;
  const ProductArgs& args;
  std::span<const ProductGroup> groups;
  int segment;
};

/// Enqueues it if a library takes it; false: none does, and nothing was enqueued. Reasons are logged,
/// but for what is too narrow to gain from a library. Of a dense product, which is one group:
bool run_dense_by_choice(GpuStream& stream, const SegmentProduct& product);
/// Of groups whose rows are at `offsets` of device memory; `table` gives their table there and is only
/// called if a library takes the product.
bool run_grouped_by_choice(GpuStream& stream, const SegmentProduct& product, const int32_t* offsets,
                           const std::function<const ProductGroup*()>& table);

}  // namespace hearth::HEARTH_GPU
