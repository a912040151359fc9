// What a save may leave after a crash: states that hold what was saved, and nothing else.
#pragma once

#include <map>
#include <set>

#include "support/crash_states.h"
#include "support/faulty_calls.h"
#include "train/state_fixture.h"

namespace hearth::test {

inline const std::string kDisk = "/memory-disk";
inline const std::string kCrashRun = kDisk + "/run";

/// What a step holds: its own values, in more than a sector.
struct CrashContent : SavedRun {
  explicit CrashContent(int64_t step) : SavedRun(static_cast<float>(step)) {
    history.resize(150, 0.25 * static_cast<double>(step));
    cursor = "{\"step\": " + std::to_string(step) + "}";
  }
};

/// Saves of steps with known content.
class CrashSaves {
 public:
  MemoryDisk disk{kDisk};
  int keep = 2;

  explicit CrashSaves(int keep_states) : keep(keep_states) {}

  /// Saves a step and then promises it.
  void save(int64_t step) {
    FaultyCalls calls(disk);
    const FileCallsOverride guard(calls);
    const CrashContent run(step);
    save_state(run.registry, kCrashRun, step, keep, kExtra);
    disk.promise(static_cast<int>(step));
  }

  /// Judges every crash state: the state found is the promised one, or a later one that was being
  /// saved; all there are are whole, and the next start and save go well.
  CrashReport judge(const std::set<int64_t>& later, const CrashBounds& bounds,
                    int64_t at_least = 0) const {
    return crash_states(disk, bounds, [&](MemoryDisk& crashed, int promised) {
      FaultyCalls calls(crashed);
      const FileCallsOverride guard(calls);
      std::set<int64_t> allowed;
      for (const int64_t step : later) {
        if (step >= promised) allowed.insert(step);
      }
      allowed.insert(std::max<int64_t>(promised, at_least));
      try {
        return fault_of(allowed);
      } catch (const std::exception& error) {
        return std::string("refused: ") + error.what();
      }
    });
  }

  /// What is wrong with the disk in use, of which one of these steps must be the newest (0: none).
  std::string fault_of(const std::set<int64_t>& allowed) const {
    std::string fault;
    const int64_t step = newest(fault);
    if (!fault.empty()) return fault;
    if (!allowed.contains(step)) return "the newest is of step " + std::to_string(step);
    remove_leftovers(kCrashRun);
    if (newest(fault) != step || !fault.empty()) return "another after clean-up " + fault;
    const int64_t next = step + 1;
    const CrashContent run(next);
    save_state(run.registry, kCrashRun, next, keep, kExtra);
    if (newest(fault) != next || !fault.empty()) return "the next save is not found " + fault;
    int64_t states = 0;
    for (const std::string& name : list_directory(kCrashRun + "/state")) {
      if (!step_of_state_directory(name)) return "left behind: " + name;
      ++states;
    }
    if (states > keep) return "more states than are kept";
    return "";
  }

 private:
  /// Finds and loads the newest state; 0 if there is none.
  static int64_t newest(std::string& fault) {
    const auto state = find_newest_state(
        kCrashRun, [&](const RejectedState& bad) { fault = "rejected: " + bad.message(); });
    if (!state) return 0;
    for (const std::string& name : list_directory(kCrashRun + "/state")) {
      if (step_of_state_directory(name)) verify_state(kCrashRun + "/state/" + name);
    }
    SavedRun loaded(-1);
    const CrashContent saved(state->step);
    load_state(loaded.registry, *state);
    const bool same = loaded.embedding == saved.embedding && loaded.head == saved.head &&
                      loaded.history == saved.history && loaded.cursor == saved.cursor &&
                      state->digest == state_digest(saved.registry);
    if (!same) fault = "a state that was never saved, of step " + std::to_string(state->step);
    return state->step;
  }
};

}  // namespace hearth::test
