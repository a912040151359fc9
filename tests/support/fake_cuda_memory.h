// The device memory of the fake runtime: mappings that only queued work may touch.
#pragma once

#include <cstddef>
#include <map>
#include <vector>

namespace hearth::test {

/// Each allocation is a mapping of its own with a page behind it that nobody may touch, and ends as
/// near to that page as its alignment of 256 allows. Not thread-safe.
class FakeDeviceMemory {
 public:
  ~FakeDeviceMemory();

  /// Filled with 0xcd; null when the system has no memory.
  void* allocate(int device, size_t bytes);
  /// False when the address is not an allocation's.
  bool release(void* address);
  size_t bytes_of(int device) const;

  /// The device of the allocation that holds this byte, -1 if none.
  int owner(const void* address) const;
  /// Whether the range is inside one allocation.
  bool holds(const void* address, size_t bytes) const;

  /// Lets anyone touch the memory of these devices until `close`.
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
