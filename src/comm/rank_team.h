// A rank of a run: its communicator of all ranks, with labels for its operations.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "comm/world.h"

namespace hearth {

/// Calls come from one thread at a time. All ranks take the same labels in the same order.
class RankTeam {
 public:
  /// The world must outlive the team.
  explicit RankTeam(World& world) : world_(world), comm_(world.everyone()) {}

  int32_t rank() const { return comm_->rank(); }
  int32_t size() const { return comm_->size(); }
  World& world() { return world_; }
  Communicator& comm() { return *comm_; }

  int64_t step() const { return label_.step; }
  /// Labels from here on are of this step, which is above the last one.
  void begin_step(int64_t step) {
    label_ = {step, 0};
    if (away_) world_.set_away(false);
    away_ = false;
  }
  /// Notices ranks that are silent for so long, or for ten median steps if that is more.
  void watch(double silence_s) {
    watch_after_step(silence_s);
    world_.watch(silence_s);
  }
  /// The same, from the end of the first step on: before it, nobody knows how long a step takes.
  void watch_after_step(double silence_s) { silence_s_ = silence_s; }
  /// The first of all ranks does other things between steps, and may take any time for them.
  void end_step(double seconds) {
    if (silence_s_ == 0) return;
    if (rank() == 0 && !away_) world_.set_away(true);
    away_ = rank() == 0;
    steps_s_.insert(std::lower_bound(steps_s_.begin(), steps_s_.end(), seconds), seconds);
    world_.watch(std::max(silence_s_, 10 * steps_s_[steps_s_.size() / 2]));
  }
  /// Of the next operation.
  CommLabel next() { return {label_.step, label_.number++}; }

 private:
  World& world_;
  std::unique_ptr<Communicator> comm_;
  CommLabel label_;
  double silence_s_ = 0;
  bool away_ = false;
  std::vector<double> steps_s_;  // ascending
};

}  // namespace hearth
