// Runs grids of emulated kernels: blocks one after the other, the threads of a block as fibers that
// switch only where they wait for each other. A kernel whose threads never do costs no more than a
// loop over them.
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
  const char* name = "";  // of the function that launches, for errors
};

/// An emulated thread, while it runs.
struct Thread {
  Index index;  // threadIdx
  unsigned number = 0;
  unsigned lane() const { return number % 32; }
  unsigned warp() const { return number / 32; }

  /// Copies of cp.async that have not arrived.
  struct Copy {
    void* to = nullptr;
    const void* from = nullptr;
    int bytes = 0, valid = 0;
    int64_t group = 0;
  };
  std::vector<Copy> copies;
  int64_t group = 0;  // the open one

  // Where it waits.
  const char* what = nullptr;
  const char* file = "";
  int line = 0;
  bool ended = false;
};

extern Thread* current;       // the running thread
extern Index block_index;     // blockIdx
extern GridShape grid_shape;  // of the running grid
extern std::byte* dynamic_shared;

/// Runs all blocks. One grid at a time: other host threads wait. Raises what a thread raises, and
/// std::logic_error for threads that wait for each other in vain.
void run_grid(const GridShape& shape, const std::function<void()>& kernel);

/// Blocks and threads in the opposite order from now on: what depends on an order that CUDA does not
/// give differs then.
void run_backwards(bool backwards);

/// Waits for all threads of the block, of which none may have ended and all must come to this line.
void sync_block(const char* file, int line);

/// Waits until all lanes of the mask are at the same operation; then one of them runs `act`, with
/// the argument of each lane.
void sync_warp(const char* what, unsigned mask, void* argument,
               void (*act)(void* const* arguments, unsigned mask));

}  // namespace hearth::cuda_emulator
