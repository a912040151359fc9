// A budget of bytes that arenas and streams share.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

namespace hearth {

/// A byte budget and its claims. A claim returns its bytes when its last owner is destroyed. Hold a
/// Budget only by shared pointers, because claims keep it alive. Thread-safe.
class Budget : public std::enable_shared_from_this<Budget> {
 public:
  /// `memory` names the memory ("host", "cuda:0"); `remedy` is the advice if the budget is too
  /// small ("raise --cpu-memory").
  Budget(std::string memory, std::string remedy, uint64_t bytes);

  /// Takes bytes for `name`. Usage error, naming `name`, if fewer are left.
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
