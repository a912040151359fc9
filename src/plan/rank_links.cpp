#include "plan/rank_links.h"

#include <algorithm>
#include <map>
#include <numeric>

namespace hearth {

namespace {

/// Of each pair, beside the payload: a record of the checking world.
constexpr double kBesideBytes = 72;

}  // namespace

double Traffic::total() const { return std::accumulate(bytes_.begin(), bytes_.end(), 0.0); }

std::string pair_name(int32_t from, int32_t to) {
  return std::to_string(from) + "/host->" + std::to_string(to) + "/host";
}

RankLinks::RankLinks(int32_t ranks, LinkRate each)
    : ranks_(ranks),
      latency_s_(ranks > 1 ? each.latency_s : 0),
      slowest_(each.bytes_per_s),
      fastest_(each.bytes_per_s) {
  if (each.bytes_per_s <= 0 || ranks == 1) return;
  out_.assign(static_cast<size_t>(ranks), each.bytes_per_s);
  in_ = out_;
}

RankLinks::RankLinks(const std::vector<std::string>& hosts,
                     const std::function<PairRate(int32_t from, int32_t to)>& rate)
    : ranks_(static_cast<int32_t>(hosts.size())) {
  std::map<std::string, int32_t> numbers;
  for (const std::string& host : hosts) {
    host_of_.push_back(numbers.emplace(host, std::ssize(numbers)).first->second);
  }
  pairs_.resize(hosts.size() * hosts.size());
  out_.resize(hosts.size());
  in_.resize(hosts.size());
  hosts_out_.resize(numbers.size());
  hosts_in_.resize(numbers.size());
  for (size_t from = 0; from < hosts.size(); ++from) {
    for (size_t to = 0; to < hosts.size(); ++to) {
      if (from == to) continue;
      const PairRate pair = rate(static_cast<int32_t>(from), static_cast<int32_t>(to));
      pairs_[from * hosts.size() + to] = pair.bytes_per_s;
      out_[from] += pair.together;
      in_[to] += pair.together;
      latency_s_ = std::max(latency_s_, pair.latency_s);
      fastest_ = std::max(fastest_, pair.bytes_per_s);
      if (slowest_ <= 0 || pair.bytes_per_s < slowest_) slowest_ = pair.bytes_per_s;
      if (host_of_[from] == host_of_[to]) continue;
      hosts_out_[static_cast<size_t>(host_of_[from])] += pair.together;
      hosts_in_[static_cast<size_t>(host_of_[to])] += pair.together;
    }
  }
}

double RankLinks::busy_s(const Traffic& traffic) const {
  const auto count = static_cast<size_t>(ranks_);
  std::vector<double> out(count), in(count), hosts_out(hosts_out_.size()),
      hosts_in(hosts_in_.size());
  double busy = 0;
  for (size_t from = 0; from < count; ++from) {
    for (size_t to = 0; to < count; ++to) {
      if (from == to) continue;
      const double bytes =
          kBesideBytes + traffic.bytes(static_cast<int32_t>(from), static_cast<int32_t>(to));
      out[from] += bytes;
      in[to] += bytes;
      if (!pairs_.empty()) busy = std::max(busy, bytes / pairs_[from * count + to]);
      if (hosts_out_.empty() || host_of_[from] == host_of_[to]) continue;
      hosts_out[static_cast<size_t>(host_of_[from])] += bytes;
      hosts_in[static_cast<size_t>(host_of_[to])] += bytes;
    }
  }
  const auto pass = [&](const std::vector<double>& bytes, const std::vector<double>& rates) {
    for (size_t i = 0; i < rates.size(); ++i) {
      if (rates[i] > 0) busy = std::max(busy, bytes[i] / rates[i]);
    }
  };
  pass(out, out_);
  pass(in, in_);
  pass(hosts_out, hosts_out_);
  pass(hosts_in, hosts_in_);
  return busy;
}

}  // namespace hearth
