// Saves that run during the next steps: one at a time, on its own thread.
#pragma once

#include <atomic>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "base/stopwatch.h"
#include "state/state_save.h"

namespace hearth {

/// The outcome of a save.
struct SaveOutcome {
  int64_t step = 0;
  std::string failure;  // empty: the state is durable
  double seconds = 0;   // from begin to end
  double waited_s = 0;  // seconds that updates waited for the save
};

class BackgroundSave {
 public:
  BackgroundSave() = default;
  /// Waits for the save in flight.
  ~BackgroundSave();
  BackgroundSave(const BackgroundSave&) = delete;
  BackgroundSave& operator=(const BackgroundSave&) = delete;

  /// Starts to write; no other save may be in flight. The memory that the save reads must not
  /// change before `wait_until_safe` returns. If no thread can be started, `begin` writes before it
  /// returns.
  void begin(std::unique_ptr<StateSave> save);
  bool in_flight() const { return save_ != nullptr; }

  /// StateSave::wait_until_safe of the save in flight; returns at once if there is none.
  void wait_until_safe(size_t views);

  /// The outcome of the save in flight, if it has ended. With `wait`, waits for its end. nullopt if
  /// there is no save or it still runs. Raises failures other than storage errors.
  std::optional<SaveOutcome> end(bool wait);

 private:
  void write();

  std::unique_ptr<StateSave> save_;
  std::thread thread_;
  std::atomic<bool> ended_{false};
  Stopwatch since_begin_;
  SaveOutcome outcome_;
  std::exception_ptr bug_;
};

}  // namespace hearth
