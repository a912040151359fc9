// The device memory of the fake runtime: mappings that only queued work may touch.
#pragma once

#include <cstddef>
#include <map>
#include <vector>

namespace hearth::test {

/// Each allocation is its own mapping before a guard page, and ends as close to that page as its
/// alignment of 256 allows. Not thread-safe.
class FakeDeviceMemory {
 public:
  ~FakeDeviceMemory();

  /// Returns memory filled with 0xcd; null if the system has no memory.
  void* allocate(int device, size_t bytes);
  /// False if the address is not an allocation.
  bool release(void* address);
  size_t bytes_of(int device) const;

  /// The device of the allocation that holds this byte, -1 if none.
  int owner(const void* address) const;
  /// Whether the range is inside one allocation.
  bool holds(const void* address, size_t bytes) const;

  /// Makes the memory of these devices accessible until `close`.
  void open(const std::vector<int>& devices);
  void close();

 private:
  struct Piece {
    std::byte* mapping = nullptr;
    size_t pages = 0;  // bytes, without the guard
    size_t bytes = 0;
    int device = 0;
    bool is_open = false;
  };
  const Piece* find(const void* address) const;
  std::map<const std::byte*, Piece> pieces_;  // by first byte
};

}  // namespace hearth::test
