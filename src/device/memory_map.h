// Which device owns a range of memory: devices look up where a copy goes from and to.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>

namespace hearth {

/// Ranges that do not overlap, each of one device. Thread-safe.
class MemoryMap {
 public:
  void add(const void* address, size_t bytes, int device);
  void remove(const void* address);
  /// The device that owns this range, -1 for other memory. A bug if the range leaves its arena.
  int owner(const void* address, size_t bytes) const;

 private:
  struct Piece {
    size_t bytes = 0;
    int device = 0;
  };
  mutable std::mutex mutex_;
  std::map<uintptr_t, Piece> pieces_;  // by first byte
};

}  // namespace hearth
