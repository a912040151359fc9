// Uploads small tables for a stream's kernels: the host writes pinned memory, which is copied to a
// twin buffer on the device.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <span>

#include "base/arena.h"
#include "device/cuda_event.h"
#include "device/cuda_state.h"

namespace hearth {

/// A ring buffer on each side. Stream order protects the twin. Before the host overwrites a segment
/// of pinned memory, it waits for the copies out of that segment.
class UploadRing {
 public:
  static constexpr size_t kTable = size_t{256} << 10;  // most bytes of one table
  // Four tables: a table, the gap that a table that does not fit leaves at the end, the further
  // tables that must not overwrite the first (CudaStream::upload), and one as reserve.
  static constexpr size_t kBytes = 4 * kTable;
  static constexpr size_t kAlignment = 256;

  UploadRing(std::shared_ptr<CudaState> device, const std::string& name);
  const void* upload(std::span<const std::byte> table, void* stream);

 private:
  static constexpr size_t kSegments = 8;
  void leave(size_t segment, void* stream);
  void enter(size_t segment);

  const std::shared_ptr<CudaState> device_;
  const std::unique_ptr<Arena> pinned_, twin_;
  std::array<std::unique_ptr<CudaEvent>, kSegments> copied_;  // made when a segment is first left
  size_t at_ = 0;                                             // next byte
  size_t segment_ = 0;                                        // segment that the host may write
};

}  // namespace hearth
