// Small tables on their way to a stream's kernels: pinned memory that the host writes, and a twin on
// the device that each table is copied to.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <span>

#include "base/arena.h"
#include "device/cuda_event.h"
#include "device/cuda_state.h"

namespace hearth {

/// Both are used in turn, from begin to end and again. The stream's order protects the twin. The host
/// waits for the copies out of a segment before it writes there again.
class UploadRing {
 public:
  static constexpr size_t kTable = size_t{256} << 10;  // bytes of one table at most
  // A table, what a table that does not fit leaves unused at the end, and the tables after which the
  // first may be overwritten; and one more for room.
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
  size_t segment_ = 0;                                        // that the host may write
};

}  // namespace hearth
