// Which rank has given no sign of life for too long. Pure: the caller brings the time.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace hearth {

/// All times are steady seconds. Without a limit nobody is silent.
class SilenceWatch {
 public:
  explicit SilenceWatch(int32_t ranks) : heard_at_(static_cast<size_t>(ranks)) {}

  /// From the first limit on, and from a shorter one, each rank has the whole of it. 0: no limit.
  void set_limit(double silence_s, double now);
  bool is_on() const { return silence_s_ > 0; }
  /// Seconds between two signs of a rank.
  double beat_s() const;
  /// Seconds between two looks, such that no beat is late.
  double pause_s() const { return silence_s_ / 16; }

  /// Whether this rank is to give a sign now: eight times in the limit, so a sign may come late.
  bool must_beat(double now);
  /// Signs in the future count, too: `at` is when this rank's silence begins.
  void heard(int32_t rank, double at) { heard_at_[static_cast<size_t>(rank)] = at; }
  /// This rank is watched no more.
  void left(int32_t rank);

  struct Silent {
    int32_t rank = 0;
    double seconds = 0;
  };
  /// The rank that has been silent for longest, if that is above the limit. Call this after all signs
  /// that have arrived were heard. If a quarter of the limit has passed since the last look, then this
  /// process was stopped, perhaps together with others: each rank has the whole limit again.
  std::optional<Silent> look(double now);

 private:
  std::vector<double> heard_at_;  // infinity: has left
  double silence_s_ = 0;
  double beat_at_ = 0, looked_at_ = 0;
  double since_ = 0;  // no silence began before, whatever is heard later of times before it
};

}  // namespace hearth
