// Named memory. What is larger than 64 KiB comes from an arena, so that the plan can name every
// byte and the peak is made before step 1.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "base/error.h"

namespace hearth {

class Pool;

/// Every address that a plan gives is a multiple of this.
constexpr size_t kArenaAlignment = 64;

constexpr size_t align_up(size_t bytes, size_t alignment = kArenaAlignment) {
  return (bytes + alignment - 1) / alignment * alignment;
}

/// A named block of memory, released with the object, as is `reservation`: the owner's claim on a
/// budget.
class Arena {
 public:
  /// Host memory, mapped whole (zeroed by the system, touched by `touch`). Raises a storage error
  /// (exit 4) when the system has no memory.
  Arena(std::string name, size_t bytes, std::shared_ptr<void> reservation = nullptr);
  /// Memory of a device, or pinned: zeroed and resident from the start, at `data`, released by
  /// `owner`. The host may not reach it (Device::host_reaches).
  Arena(std::string name, std::byte* data, size_t bytes, std::shared_ptr<void> owner);
  ~Arena();
  Arena(Arena&& other) noexcept;
  Arena& operator=(Arena&&) = delete;

  const std::string& name() const { return name_; }
  std::byte* data() const { return data_; }
  size_t size() const { return size_; }
  /// Writes one byte a page by the workers of the pool, so that the memory is really there; content
  /// is kept. Does nothing to memory of a device.
  void touch(const Pool& pool) const;
  /// Bytes of it that are in memory now, at most `size`.
  size_t resident_bytes() const;

 private:
  std::string name_;
  std::byte* data_ = nullptr;
  size_t size_ = 0;
  bool mapped_ = false;  // by this object
  std::shared_ptr<void> reservation_;
};

/// Short-lived memory of one op or one worker: a stack over a fixed piece of an arena. Exceeding it
/// is a bug of the op's scratch declaration.
class Scratch {
 public:
  Scratch() = default;
  Scratch(std::byte* data, size_t size) : data_(data), size_(size) {}

  template <class T>
  T* take(int64_t n) {
    const size_t begin = align_up(used_);
    const size_t end = begin + sizeof(T) * static_cast<size_t>(n);
    HEARTH_CHECK(n >= 0 && end <= size_, "scratch: an op needs more than it declared");
    used_ = end;
    return reinterpret_cast<T*>(data_ + begin);
  }
  size_t size() const { return size_; }

  /// Gives back, at its end, all that was taken during its life.
  class Frame {
   public:
    explicit Frame(Scratch& scratch) : scratch_(scratch), used_(scratch.used_) {}
    ~Frame() { scratch_.used_ = used_; }
    Frame(const Frame&) = delete;
    Frame& operator=(const Frame&) = delete;

   private:
    Scratch& scratch_;
    size_t used_;
  };

 private:
  std::byte* data_ = nullptr;
  size_t size_ = 0;
  size_t used_ = 0;
};

}  // namespace hearth
