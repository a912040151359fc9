// Arguments and launch of the kernel that clears memory.
#pragma once

#include <cstdint>

namespace hearth::HEARTH_GPU {

struct ByteRows {
  void* data = nullptr;
  int64_t rows = 0;
  int64_t bytes = 0;   // per row
  int64_t stride = 0;  // bytes from one row to the next
};

/// Enqueues and returns.
void clear_on(void* stream, const ByteRows& x);

}  // namespace hearth::HEARTH_GPU
