// Products that a library computes before our kernels do.
#pragma once

#include <functional>
#include <span>

#include "gpu_kernels/gpu_stream.h"
#include "gpu_kernels/kernels/product.h"

namespace hearth::HEARTH_GPU {

/// One segment of a product, as `Products` has it: args.a and args.c, and the groups in host memory.
struct SegmentProduct {
  Form form;
  const ProductArgs& args;
  std::span<const ProductGroup> groups;
  int segment;
};

/// Enqueues the product if a library takes it; false: none does, and nothing was enqueued. The log says
/// why, except for products that are too narrow to gain from a library. For a dense product, which is
/// one group:
bool run_dense_by_library(GpuStream& stream, const SegmentProduct& product);
/// For groups whose rows are at `offsets` in device memory. `table` gives their table there and is only
/// called if a library takes the product.
bool run_grouped_by_library(GpuStream& stream, const SegmentProduct& product,
                            const int32_t* offsets,
                            const std::function<const ProductGroup*()>& table);

}  // namespace hearth::HEARTH_GPU
