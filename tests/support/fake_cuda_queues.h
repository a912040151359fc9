// The streams and events of the fake runtime, and the order in which queued work runs.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <random>
#include <vector>

namespace hearth::test {

/// One recording of an event.
struct FakeRecord {
  bool reached = false;
  double seconds = 0;  // on the fake clock, which counts work
  struct FakeStream* stream = nullptr;
};

struct FakeEvent {
  int device = 0;
  bool timed = false;
  std::shared_ptr<FakeRecord> last;  // null: never recorded
};

/// Work, the recording of an event, or a wait for an event.
struct FakeItem {
  int64_t number = 0;  // number of the work, from 1
  std::function<void()> work;
  std::shared_ptr<FakeRecord> record, wait;
};

struct FakeStream {
  void* runtime = nullptr;  // the FakeCuda
  int device = 0;
  int priority = 0;
  std::deque<FakeItem> items;
};

/// Not thread-safe.
struct FakeQueues {
  std::function<void(FakeStream&, FakeItem&)> run_work;
  uint64_t seed = 0;
  std::mt19937_64 random;
  std::vector<std::unique_ptr<FakeStream>> streams;
  int64_t next_number = 1;
  double clock = 0;
  double seconds_per_work = 1e-3;

  /// Runs only what is needed until the record is reached, or until the stream is empty (`until`
  /// null).
  void advance(FakeStream& stream, const FakeRecord* until);

  /// With a seed: some steps of any streams.
  void stir();

 private:
  bool step(FakeStream& stream);  // false: the stream is empty or its first item waits
};

}  // namespace hearth::test
