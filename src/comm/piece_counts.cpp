#include "comm/piece_counts.h"

namespace hearth {

void PieceCounts::sends(int64_t group, int32_t to) {
  const std::lock_guard lock(mutex_);
  ++lanes_[{group, to}].sends;
}

void PieceCounts::expects(int64_t group, int32_t from, const CommPoint& at) {
  const std::lock_guard lock(mutex_);
  Lane& lane = lanes_[{group, from}];
  ++lane.expects;
  const bool is_same = !lane.expected.empty() && lane.expected.back().at == at;
  if (!is_same) lane.expected.push_back({at, 0});
  lane.expected.back().end = lane.expects;
}

void PieceCounts::sent() {
  const std::lock_guard lock(mutex_);
  ++ended_;
}

void PieceCounts::arrived(int64_t group, int32_t from) {
  const std::lock_guard lock(mutex_);
  ++ended_;
  Lane& lane = lanes_[{group, from}];
  ++lane.arrived;
  if (lane.expected.front().end == lane.arrived) lane.expected.pop_front();
}

int64_t PieceCounts::ended() const {
  const std::lock_guard lock(mutex_);
  return ended_;
}

bool PieceCounts::has_sent_more(int64_t group, int32_t to, int64_t arrived) const {
  const std::lock_guard lock(mutex_);
  const auto lane = lanes_.find({group, to});
  return lane != lanes_.end() && lane->second.sends > arrived;
}

std::vector<PieceWait> PieceCounts::waits(int32_t from) const {
  const std::lock_guard lock(mutex_);
  std::vector<PieceWait> waits;
  for (const auto& [key, lane] : lanes_) {
    if (key.second != from || lane.expected.empty()) continue;
    waits.push_back({key.first, lane.arrived, ended_, lane.expected.front().at});
  }
  return waits;
}

}  // namespace hearth
