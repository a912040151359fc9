// Arguments and launch of the AdamW kernel.
#pragma once

#include <cstdint>

#include "gpu_kernels/kernels/product.h"
#include "ops/adamw_step.h"

namespace hearth::HEARTH_GPU {

/// Elements per thread block: enough to make the search for the block's run negligible.
constexpr int64_t kAdamWBlock = int64_t{1} << 13;

struct AdamWRun {
  float *gradient = nullptr, *master = nullptr, *moment1 = nullptr, *moment2 = nullptr;
  void* working = nullptr;  // null: none
  int64_t size = 0;
  int64_t first_block = 0;  // index of the run's first thread block
  Stored stored = Stored::f32;
  bool quads = false;  // in_quads of all its views
};

struct AdamWArguments {
  AdamWStep step;
  const AdamWRun* runs = nullptr;  // device memory
  int64_t count = 0, blocks = 0;
};

/// Enqueues and returns.
void adamw_on(void* stream, const AdamWArguments& a);

}  // namespace hearth::HEARTH_GPU
