// The stream of a host device: a pool of workers and their scratch memory.
#pragma once

#include <memory>
#include <vector>

#include "base/pool.h"
#include "device/device.h"

namespace hearth {

/// Host ops run on `pool()` and finish before they return.
class HostStream final : public Stream {
 public:
  /// `reservation`: the claim on the device's budget, held as long as the memory.
  explicit HostStream(const StreamOptions& options, std::shared_ptr<void> reservation = nullptr);
  /// Bytes that a stream with these options takes.
  static size_t memory_bytes(const StreamOptions& options);

  void synchronize() override {}
  Scratch& scratch() override { return scratch_; }
  double busy_seconds() const override { return pool_.busy_seconds(); }
  size_t resident_bytes() const override { return memory_.resident_bytes(); }
  /// Memory of one worker, for the duration of a tile.
  Scratch& worker_scratch(int worker) { return worker_scratch_[static_cast<size_t>(worker)]; }
  const Pool& pool() const { return pool_; }

 private:
  Arena memory_;
  Pool pool_;
  Scratch scratch_;
  std::vector<Scratch> worker_scratch_;
};

/// Downcasts the stream; a bug if it belongs to another kind of device.
HostStream& host_stream(Stream& stream);

}  // namespace hearth
