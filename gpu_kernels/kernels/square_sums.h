// Arguments and launch of the sum_squares kernels.
#pragma once

#include <cstdint>

namespace hearth::HEARTH_GPU {

constexpr int64_t kSquareBlock = int64_t{1} << 15;  // elements

struct SquaresView {
  const float* data = nullptr;
  int64_t size = 0;
  int64_t first_block = 0;  // index of the view's first block
};

struct SquaresArguments {
  const SquaresView* views = nullptr;  // device memory
  int64_t count = 0, blocks = 0;
  double* partial = nullptr;  // [blocks]
  double* out = nullptr;      // [count]
};

/// Enqueues and returns.
void sum_squares_on(void* stream, const SquaresArguments& a);

}  // namespace hearth::HEARTH_GPU
