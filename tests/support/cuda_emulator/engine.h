// Runs grids of emulated kernels: blocks in sequence, the threads of a block as fibers. Fibers
// switch only when they wait for each other, so a kernel without waits costs no more than a loop.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

namespace hearth::cuda_emulator {

struct Index {
  unsigned x = 0, y = 0, z = 0;
};

struct GridShape {
  Index blocks{1, 1, 1};
  unsigned threads = 1;
  size_t shared_bytes = 0;
  const char* name = "";  // name of the launching function, for errors
};

/// The state of an emulated thread.
struct Thread {
  Index index;  // threadIdx
  unsigned number = 0;
  unsigned lane() const { return number % 32; }
  unsigned warp() const { return number / 32; }

  /// A cp.async copy that has not arrived.
  struct Copy {
    void* to = nullptr;
    const void* from = nullptr;
    int bytes = 0, valid = 0;
    int64_t group = 0;
  };
  std::vector<Copy> copies;
  int64_t group = 0;  // the open group of copies

  // The operation that it waits at, and its place in the source.
  const char* what = nullptr;
  const char* file = "";
  int line = 0;
  bool ended = false;
};

extern Thread* current;       // the running thread
extern Index block_index;     // blockIdx
extern GridShape grid_shape;  // shape of the running grid
extern std::byte* dynamic_shared;

/// Runs all blocks. One grid at a time: other host threads wait. Rethrows exceptions of threads;
/// throws std::logic_error for a deadlock.
void run_grid(const GridShape& shape, const std::function<void()>& kernel);

/// Runs blocks and threads in reverse order from now on. Results change if a kernel depends on an
/// order that CUDA does not guarantee.
void run_backwards(bool backwards);

/// Waits for all threads of the block. None may have ended, and all must reach this line.
void sync_block(const char* file, int line);

/// Waits until all lanes of the mask reach the same operation. Then one lane runs `act` with the
/// arguments of all lanes.
void sync_warp(const char* what, unsigned mask, void* argument,
               void (*act)(void* const* arguments, unsigned mask));

}  // namespace hearth::cuda_emulator
