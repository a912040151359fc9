#include "plan/rank_links.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "base/error.h"

namespace hearth {

namespace {

constexpr std::array<int32_t, 5> kNoLimits = {-1, -1, -1, -1, -1};

}  // namespace

double Traffic::total() const { return std::accumulate(bytes_.begin(), bytes_.end(), 0.0); }

std::string pair_name(int32_t from, int32_t to) {
  return std::to_string(from) + "/host->" + std::to_string(to) + "/host";
}

int32_t RankLinks::add_limit(double bytes_per_s) {
  rates_.push_back(bytes_per_s);
  return static_cast<int32_t>(rates_.size()) - 1;
}

RankLinks::RankLinks(int32_t ranks, LinkRate each)
    : ranks_(ranks),
      latency_s_(ranks > 1 ? each.latency_s : 0),
      slowest_(each.bytes_per_s),
      fastest_(each.bytes_per_s),
      limits_of_(static_cast<size_t>(ranks * ranks), kNoLimits) {
  if (each.bytes_per_s <= 0) return;
  for (int32_t rank = 0; rank < ranks; ++rank) {
    const int32_t out = add_limit(each.bytes_per_s), in = add_limit(each.bytes_per_s);
    for (int32_t other = 0; other < ranks; ++other) {
      limits(rank, other)[0] = out;
      limits(other, rank)[1] = in;
    }
  }
}

RankLinks::RankLinks(const std::vector<std::string>& hosts,
                     const std::function<PairRate(int32_t from, int32_t to)>& rate)
    : ranks_(static_cast<int32_t>(hosts.size())),
      limits_of_(hosts.size() * hosts.size(), kNoLimits) {
  // What several pairs share: the rate of a rank, or of a host to others, is what they reach together.
  std::map<std::string, int32_t> shared;
  const auto share = [&](const std::string& name, double bytes_per_s) {
    const auto [limit, is_new] = shared.try_emplace(name, -1);
    if (is_new) limit->second = add_limit(0);
    rates_[static_cast<size_t>(limit->second)] += bytes_per_s;
    return limit->second;
  };
  for (int32_t from = 0; from < ranks_; ++from) {
    for (int32_t to = 0; to < ranks_; ++to) {
      if (from == to) continue;
      const PairRate pair = rate(from, to);
      latency_s_ = std::max(latency_s_, pair.latency_s);
      fastest_ = std::max(fastest_, pair.bytes_per_s);
      if (slowest_ <= 0 || pair.bytes_per_s < slowest_) slowest_ = pair.bytes_per_s;
      Limits& own = limits(from, to);
      own[0] = add_limit(pair.bytes_per_s);
      own[1] = share("out of rank " + std::to_string(from), pair.together);
      own[2] = share("into rank " + std::to_string(to), pair.together);
      const std::string &a = hosts[static_cast<size_t>(from)], &b = hosts[static_cast<size_t>(to)];
      if (a == b) continue;
      own[3] = share("out of host " + a, pair.together);
      own[4] = share("into host " + b, pair.together);
    }
  }
}

double RankLinks::busy_s(const Traffic& traffic) const {
  BookedLinks free(*this);
  double busy = 0;
  for (int32_t from = 0; from < ranks_; ++from) {
    for (int32_t to = 0; to < ranks_; ++to) {
      if (from == to) continue;
      const double bytes = traffic.bytes(from, to) + kRecordBytes;
      busy = std::max(busy, free.book(from, to, bytes, 0));
    }
  }
  return busy;
}

double BookedLinks::book(int32_t from, int32_t to, double bytes, double now) {
  double passed = now;
  for (const int32_t limit : links_.limits_of_[static_cast<size_t>(from * links_.ranks_ + to)]) {
    const auto at = static_cast<size_t>(limit);
    if (limit < 0 || links_.rates_[at] <= 0) continue;
    free_at_[at] = std::max(free_at_[at], now) + bytes / links_.rates_[at];
    passed = std::max(passed, free_at_[at]);
  }
  return passed;
}

}  // namespace hearth
