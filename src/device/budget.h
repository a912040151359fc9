// A budget of bytes that arenas and streams share.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

namespace hearth {

/// Bytes reserved of a budget; a claim gives its bytes back when its last owner is gone. Owned by
/// shared pointers only, as claims keep it alive. Thread-safe.
class Budget : public std::enable_shared_from_this<Budget> {
 public:
  /// `memory`: whose it is ("host", "cuda:0"); `remedy`: what to do when it does not suffice
  /// ("raise --cpu-memory").
  Budget(std::string memory, std::string remedy, uint64_t bytes);

  /// Takes bytes for `name`; a usage error that names it when fewer are left.
  std::shared_ptr<void> claim(const std::string& name, uint64_t bytes);
  uint64_t bytes() const { return bytes_; }
  uint64_t used() const;

 private:
  const std::string memory_, remedy_;
  const uint64_t bytes_;
  mutable std::mutex mutex_;
  uint64_t used_ = 0;
};

}  // namespace hearth
