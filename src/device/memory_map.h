// Which device owns a range of memory. Devices look up the two ends of a copy.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>

namespace hearth {

/// Disjoint ranges, each owned by one device. Thread-safe.
class MemoryMap {
 public:
  void add(const void* address, size_t bytes, int device);
  void remove(const void* address);
  /// The device that owns this range; -1 if none does. A bug if the range leaves its arena.
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
