#include "comm/pair_rates.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <thread>
#include <utility>

#include "base/stopwatch.h"

namespace hearth {

namespace {

constexpr int32_t kPings = 9;
constexpr size_t kFirstBytes = 1024;
constexpr size_t kGrowth = 4;        // of messages, as long as they take little of the time
constexpr double kAloneShare = .7;   // of the time; the rest is for all pairs together
constexpr int32_t kMostTimes = 100;  // messages of a pair
constexpr int32_t kRounds = 2;       // of all pairs together

/// Other work on the machine only makes a message slower, so what a third of them reach counts.
double fast_third(std::vector<double> seconds) {
  const auto third = seconds.begin() + static_cast<std::ptrdiff_t>(seconds.size() / 3);
  std::nth_element(seconds.begin(), third, seconds.end());
  return *third;
}

template <class Number>
ConstBytes sent(const Number& number) {
  return {reinterpret_cast<const std::byte*>(&number), sizeof number};
}
template <class Number>
Bytes received(Number& number) {
  return {reinterpret_cast<std::byte*>(&number), sizeof number};
}

/// One rank of the measurement.
class PairBench {
 public:
  PairBench(World& world, const PairBounds& bounds)
      : bounds_(bounds),
        comm_(world.everyone()),
        ranks_(comm_->size()),
        rank_(comm_->rank()),
        memory_(bounds.most_bytes / 2, std::byte{1}),
        incoming_(bounds.most_bytes / 2) {}

  std::vector<MeasuredPair> measure() {
    const double share = kAloneShare * bounds_.seconds / (ranks_ * (ranks_ - 1));
    std::vector<MeasuredPair> own;
    for (int32_t from = 0; from < ranks_; ++from) {
      for (int32_t to = 0; to < ranks_; ++to) {
        if (from == to) continue;
        if (rank_ == from) own.push_back(send_alone(to, share));
        if (rank_ == to) receive_alone(from);
        step_ += 1;  // labels of the next pair are above those of this one
        number_ = 0;
      }
    }
    std::vector<MeasuredPair> all = joined(own);
    const std::vector<double> together = receive_together(all);
    for (MeasuredPair& pair : own) pair.together = together[static_cast<size_t>(pair.to)];
    return joined(own);
  }

 private:
  CommLabel next() { return {step_, number_++}; }

  /// A number from each side to the other, both at once. Takes the latency.
  uint64_t swap(int32_t peer, uint64_t own) {
    uint64_t other = 0;
    const bool first = rank_ < peer;
    auto one = first ? comm_->send(next(), peer, sent(own))
                     : comm_->receive(next(), peer, received(other));
    auto two = first ? comm_->receive(next(), peer, received(other))
                     : comm_->send(next(), peer, sent(own));
    comm_->wait_for(std::move(one));
    comm_->wait_for(std::move(two));
    return other;
  }

  /// Sends so many bytes, and waits for an answer: bytes over rate, and two latencies.
  double send_bytes(int32_t to, size_t bytes) {
    const Stopwatch watch;
    uint64_t answer = 0;
    auto message = comm_->send(next(), to, {memory_.data(), bytes});
    auto answered = comm_->receive(next(), to, received(answer));
    comm_->wait_for(std::move(message));
    comm_->wait_for(std::move(answered));
    return watch.seconds();
  }

  MeasuredPair send_alone(int32_t to, double seconds) {
    const Stopwatch watch;
    std::vector<double> pings;
    for (int32_t i = 0; i < kPings; ++i) {
      const Stopwatch ping;
      swap(to, kFirstBytes);
      pings.push_back(ping.seconds());
    }
    MeasuredPair pair{rank_, to, fast_third(pings), 0, 0};
    std::vector<double> times;
    size_t bytes = kFirstBytes;
    for (int32_t i = 0; i < kMostTimes; ++i) {
      swap(to, bytes);
      const double took = send_bytes(to, bytes);
      times.push_back(took);
      if (watch.seconds() > seconds) break;
      const size_t larger = std::min(kGrowth * bytes, memory_.size());
      if (larger == bytes || kGrowth * took > seconds / 4) continue;
      bytes = larger;
      times.clear();  // the largest messages count
    }
    swap(to, 0);
    const double took = fast_third(times);
    pair.bytes_per_s = static_cast<double>(bytes) / std::max(took - 2 * pair.latency_s, took / 10);
    return pair;
  }

  void receive_alone(int32_t from) {
    for (int32_t i = 0; i < kPings; ++i) swap(from, 0);
    while (const uint64_t bytes = swap(from, 0)) {
      comm_->wait_for(comm_->receive(next(), from, {incoming_.data(), bytes}));
      comm_->wait_for(comm_->send(next(), from, sent(bytes)));
    }
  }

  /// The pairs of all ranks, each of which knows those that it sends on.
  std::vector<MeasuredPair> joined(const std::vector<MeasuredPair>& own) {
    const auto count = static_cast<size_t>(ranks_);
    std::vector<MeasuredPair> all(count * (count - 1));
    std::vector<Bytes> from;
    for (size_t rank = 0; rank < count; ++rank) {
      from.push_back({reinterpret_cast<std::byte*>(all.data() + rank * (count - 1)),
                      (count - 1) * sizeof(MeasuredPair)});
    }
    comm_->wait_for(comm_->gather(
        next(), {reinterpret_cast<const std::byte*>(own.data()), own.size() * sizeof(MeasuredPair)},
        from));
    return all;
  }

  /// By receiving rank: the rate at which this rank's bytes arrived while all sent to all.
  std::vector<double> receive_together(const std::vector<MeasuredPair>& alone) {
    const auto count = static_cast<size_t>(ranks_);
    double slowest = 0;
    for (const MeasuredPair& pair : alone) {
      const double rate = pair.bytes_per_s;
      if (slowest <= 0 || rate < slowest) slowest = rate;
    }
    // If all of them shared one link, they would take this long.
    const double seconds = (1 - kAloneShare) * bounds_.seconds / (2 * kRounds);
    const auto pairs = static_cast<double>(alone.size());
    const auto bytes = static_cast<size_t>(
        std::clamp(slowest * seconds / pairs, 1024.0,
                   static_cast<double>(incoming_.size()) / static_cast<double>(count)));
    std::vector<double> arrived(count);
    for (int32_t round = 0; round < kRounds; ++round) {
      const std::vector<double> rates = arrive_together(bytes, alone);
      for (size_t r = 0; r < count; ++r) arrived[r] = std::max(arrived[r], rates[r]);
    }
    // What each rank saw arrive, to those that sent it.
    std::vector<double> all(count * count);
    std::vector<Bytes> from;
    for (size_t rank = 0; rank < count; ++rank) {
      from.push_back(
          {reinterpret_cast<std::byte*>(all.data() + rank * count), count * sizeof(double)});
    }
    comm_->wait_for(comm_->gather(
        next(), {reinterpret_cast<const std::byte*>(arrived.data()), count * sizeof(double)},
        from));
    std::vector<double> own(count);
    for (size_t to = 0; to < count; ++to) own[to] = all[to * count + static_cast<size_t>(rank_)];
    return own;
  }

  /// By sending rank: the rate at which its bytes arrived here. In pieces, so that links that pass
  /// one message after the other carry those of all pairs in turn.
  std::vector<double> arrive_together(size_t bytes, const std::vector<MeasuredPair>& alone) {
    std::vector<Bytes> nothing(static_cast<size_t>(ranks_));
    comm_->wait_for(comm_->gather(next(), {}, nothing));  // all begin
    const Stopwatch watch;
    const auto pieces = static_cast<size_t>(std::clamp(64 / (ranks_ - 1), 1, 16));
    std::vector<std::pair<int32_t, std::unique_ptr<Pending>>> arriving;  // with the sender
    for (size_t piece = 0; piece < pieces; ++piece) {
      const size_t size = bytes / pieces;
      for (int32_t step = 1; step < ranks_; ++step) {
        const int32_t to = (rank_ + step) % ranks_, from = (rank_ + ranks_ - step) % ranks_;
        std::byte* const place =
            incoming_.data() + bytes * static_cast<size_t>(from) + size * piece;
        arriving.emplace_back(
            from, comm_->transfer(next(), {{to, {memory_.data(), size}}}, {{from, {place, size}}}));
      }
    }
    std::vector<double> ended(static_cast<size_t>(ranks_));
    while (!arriving.empty()) {
      std::erase_if(arriving, [&](auto& one) {
        if (!one.second->reached()) return false;
        ended[static_cast<size_t>(one.first)] = watch.seconds();
        return true;
      });
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
    std::vector<double> rates(static_cast<size_t>(ranks_));
    for (const MeasuredPair& pair : alone) {
      if (pair.to != rank_) continue;
      const double took = ended[static_cast<size_t>(pair.from)];
      const double moving = std::max(took - pair.latency_s, took / 10);
      rates[static_cast<size_t>(pair.from)] =
          std::min(static_cast<double>(bytes / pieces * pieces) / moving, pair.bytes_per_s);
    }
    return rates;
  }

  const PairBounds bounds_;
  const std::unique_ptr<Communicator> comm_;
  const int32_t ranks_, rank_;
  std::vector<std::byte> memory_, incoming_;
  int64_t step_ = 0;
  int32_t number_ = 0;
};

}  // namespace

std::vector<MeasuredPair> measure_pairs(World& world, const PairBounds& bounds) {
  PairBench bench(world, bounds);
  if (world.size() == 1) return {};
  return bench.measure();
}

}  // namespace hearth
