// What the kernels of sum_squares take, and their launches.
#pragma once

#include <cstdint>

namespace hearth::HEARTH_GPU {

constexpr int64_t kSquareBlock = int64_t{1} << 15;  // elements

struct SquaresView {
  const float* data = nullptr;
  int64_t size = 0;
  int64_t first_block = 0;  // of all views' blocks; those of a view follow each other
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
