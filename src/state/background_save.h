// Saves under the steps that follow: one at a time, on a thread of its own.
#pragma once

#include <atomic>
#include <chrono>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "state/saved_state.h"

namespace hearth {

/// What became of a save.
struct SaveOutcome {
  int64_t step = 0;
  std::string failure;  // empty: the state is durable
  double seconds = 0;   // from begin to end
  double waited_s = 0;  // that updates waited for it
};

class BackgroundSave {
 public:
  BackgroundSave() = default;
  /// Waits for the save in flight.
  ~BackgroundSave();
  BackgroundSave(const BackgroundSave&) = delete;
  BackgroundSave& operator=(const BackgroundSave&) = delete;

  /// Starts to write; none may be in flight. What the save reads must not change before
  /// `wait_until_safe` says so. Where no thread can be had, it is written before this returns.
  void begin(std::unique_ptr<StateSave> save);
  bool in_flight() const { return save_ != nullptr; }

  /// StateSave::wait_until_safe of the save in flight; nothing waits where there is none.
  void wait_until_safe(size_t views);

  /// The outcome of the save in flight if it has ended; with `wait`, when it has. nullopt where there
  /// is none or it goes on. A failure other than a storage error is raised.
  std::optional<SaveOutcome> end(bool wait);

 private:
  void write();

  std::unique_ptr<StateSave> save_;
  std::thread thread_;
  std::atomic<bool> ended_{false};
  std::chrono::steady_clock::time_point begin_;
  SaveOutcome outcome_;
  std::exception_ptr bug_;
};

}  // namespace hearth
