// The links between the ranks of a run, and how long a collective occupies them. Pure; no clock.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "device/link_rate.h"

namespace hearth {

/// Bytes that the ranks of one collective send each other.
class Traffic {
 public:
  explicit Traffic(int32_t ranks)
      : ranks_(ranks), bytes_(static_cast<size_t>(ranks) * static_cast<size_t>(ranks)) {}
  int32_t ranks() const { return ranks_; }
  /// What a rank sends to itself passes no link.
  void add(int32_t from, int32_t to, double bytes) {
    if (from != to) bytes_[at(from, to)] += bytes;
  }
  double bytes(int32_t from, int32_t to) const { return bytes_[at(from, to)]; }
  double total() const;

 private:
  size_t at(int32_t from, int32_t to) const {
    return static_cast<size_t>(from) * static_cast<size_t>(ranks_) + static_cast<size_t>(to);
  }

  int32_t ranks_;
  std::vector<double> bytes_;
};

/// One direction between two ranks, as `hearth profile --cluster` measures it.
struct PairRate {
  double bytes_per_s = 0;  // while no other pair sends
  double latency_s = 0;
  double together = 0;  // bytes per second while all pairs send
};
/// "0/host->1/host".
std::string pair_name(int32_t from, int32_t to);

/// What the checking world sends from each rank to each other, beside a collective.
inline constexpr double kRecordBytes = 72;

class RankLinks {
 public:
  /// One rank: no links.
  RankLinks() = default;
  /// Each rank has one link to all others, with the same rate in both directions
  /// (ThreadWorldOptions::links). Rate 0: no limit.
  RankLinks(int32_t ranks, LinkRate each);
  /// Each pair has its own rate. A rank sends to all others no faster than all pairs together did,
  /// and nor do the ranks of a host to those of other hosts. `hosts`: by rank.
  RankLinks(const std::vector<std::string>& hosts,
            const std::function<PairRate(int32_t from, int32_t to)>& rate);

  int32_t ranks() const { return ranks_; }
  /// From when the last rank issues an operation: the slowest pair.
  double latency_s() const { return latency_s_; }
  /// Seconds in which free links pass a collective: those of the link that has most to do. What the
  /// checking world sends beside it counts, too.
  double busy_s(const Traffic& traffic) const;
  /// The lowest and the highest rate of a pair alone; 0: no limit.
  double slowest() const { return slowest_; }
  double fastest() const { return fastest_; }

 private:
  friend class BookedLinks;
  /// Numbers of what limits a pair: its own rate, what its ranks send and get, and what their hosts do.
  /// -1: no further.
  using Limits = std::array<int32_t, 5>;

  int32_t add_limit(double bytes_per_s);
  Limits& limits(int32_t from, int32_t to) {
    return limits_of_[static_cast<size_t>(from * ranks_ + to)];
  }

  int32_t ranks_ = 1;
  double latency_s_ = 0, slowest_ = 0, fastest_ = 0;
  std::vector<double> rates_;      // bytes per second, by number of a limit
  std::vector<Limits> limits_of_;  // by pair, as in Traffic
};

/// The links while a step is simulated. Each limit of RankLinks passes one message after the other, in the
/// order of the calls.
class BookedLinks {
 public:
  /// `links` must outlive the object.
  explicit BookedLinks(const RankLinks& links) : links_(links), free_at_(links.rates_.size()) {}
  /// When all that limits the pair has passed a message that both ranks have issued at `now`.
  double book(int32_t from, int32_t to, double bytes, double now);

 private:
  const RankLinks& links_;
  std::vector<double> free_at_;  // by limit
};

}  // namespace hearth
