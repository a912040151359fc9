// Tries libraries for products before our own kernels.
#pragma once

#include <functional>
#include <span>

#include "gpu_kernels/gpu_stream.h"
#include "gpu_kernels/kernels/product.h"

namespace hearth::HEARTH_GPU {

/// One segment of a product of `Products`: args.a and args.c, and the groups in host memory.
struct SegmentProduct {
  Form form;
  const ProductArgs& args;
  std::span<const ProductGroup> groups;
  int segment;
};

/// Enqueues a dense product (one group) if a library takes it; else returns false. The log says
/// why, except for products that are too narrow to gain from a library.
bool run_dense_by_library(GpuStream& stream, const SegmentProduct& product);
/// The same for groups with row `offsets` in device memory. `table` returns the groups in device
/// memory; it is called only if a library takes the product.
bool run_grouped_by_library(GpuStream& stream, const SegmentProduct& product,
                            const int32_t* offsets,
                            const std::function<const ProductGroup*()>& table);

}  // namespace hearth::HEARTH_GPU
