// Named memory. Large buffers come from arenas, so that the plan can name every byte and the peak
// is reached before step 1.
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

/// A named block of memory. The destructor releases the memory and `reservation`, the owner's claim
/// on a budget.
class Arena {
 public:
  /// Host memory, mapped whole (zeroed by the system, touched by `touch`). Raises a storage error
  /// (exit 4) if the system has no memory.
  Arena(std::string name, size_t bytes, std::shared_ptr<void> reservation = nullptr);
  /// Device memory or pinned memory at `data`, zeroed and resident from the start. Releasing
  /// `owner` frees the memory. The host may be unable to access it (Device::host_reaches).
  Arena(std::string name, std::byte* data, size_t bytes, std::shared_ptr<void> owner);
  ~Arena();
  Arena(Arena&& other) noexcept;
  Arena& operator=(Arena&&) = delete;

  const std::string& name() const { return name_; }
  std::byte* data() const { return data_; }
  size_t size() const { return size_; }
  /// Makes the memory resident: the workers of the pool write one byte per page. Keeps the content.
  /// Does nothing to device memory.
  void touch(const Pool& pool) const;
  /// Bytes of the arena that are resident now, at most `size`.
  size_t resident_bytes() const;

 private:
  std::string name_;
  std::byte* data_ = nullptr;
  size_t size_ = 0;
  bool mapped_ = false;  // this object mapped the memory
  std::shared_ptr<void> reservation_;
};

/// Short-lived memory of one op or one worker: a stack over a fixed piece of an arena. If it runs
/// out, the op declared too little scratch, which is a bug.
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

  /// RAII: its destructor gives back everything that was taken since its constructor.
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
