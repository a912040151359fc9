// State that a CUDA device shares with its streams, events and arenas: calls, first error, memory.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/arena.h"
#include "device/budget.h"
#include "device/cuda_calls.h"
#include "device/memory_map.h"

namespace hearth {

struct CudaStateParts {
  CudaCalls& calls;
  int number = 0;
  int node = -1;  // nearest NUMA node; -1: unknown or only one node
  std::shared_ptr<Budget> budget;
  std::shared_ptr<Budget> pinned_budget;  // null: none
  std::shared_ptr<MemoryMap> map;         // of all devices of the run
  std::vector<int> devices;               // numbers of all devices of the run
  std::string identity;                   // Device::identity
};

/// Thread-safe.
class CudaState : public std::enable_shared_from_this<CudaState> {
 public:
  explicit CudaState(const CudaStateParts& parts);
  ~CudaState();
  CudaState(const CudaState&) = delete;
  CudaState& operator=(const CudaState&) = delete;

  const std::string& name() const { return name_; }
  const CudaStateParts& parts() const { return parts_; }

  /// Makes the call on this device. If it fails, the device is broken: this call and all later
  /// calls raise the same error. `label` is CUDA's name of the function.
  template <class... P, class... A>
  void call(const char* label, CudaCode (CudaCalls::*function)(P...), A... arguments) {
    enter();
    check(label, (parts_.calls.*function)(arguments...));
  }
  /// The same without errors, for releasing resources.
  template <class... P, class... A>
  void release(CudaCode (CudaCalls::*function)(P...), A... arguments) noexcept {
    parts_.calls.set_device(parts_.number);
    (parts_.calls.*function)(arguments...);
  }
  /// Raises the first error if there is one. Makes this device current for the calling thread.
  void enter();
  void check(const char* label, CudaCode code);

  /// Whether work has passed the event, a cudaEvent_t that was recorded.
  bool has_reached(void* event);

  /// As Device::pin.
  std::shared_ptr<void> pin(void* memory, size_t bytes);
  std::unique_ptr<Arena> reserve_device(const std::string& name, size_t bytes);
  std::unique_ptr<Arena> reserve_pinned(const std::string& name, size_t bytes);

 private:
  void unpin(void* memory) noexcept;
  [[noreturn]] void refuse_memory(const std::string& what);

  const CudaStateParts parts_;
  const std::string name_;
  void* service_ = nullptr;  // the stream that zeroes memory
  std::mutex mutex_;         // guards error_
  std::optional<std::string> error_;
};

}  // namespace hearth
