// Signs of life: who is silent, by a clock of the test, and watchdogs of several ranks of this process,
// on real connections.
#include <sys/socket.h>

#include <atomic>
#include <catch2/catch_test_macros.hpp>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

#include "base/stopwatch.h"
#include "comm/peer_sockets.h"
#include "comm/silence_watch.h"
#include "comm/watchdog.h"

namespace hearth::test {
namespace {

constexpr CommPoint kPoint{CommKind::gather, {7, 3}};

/// Waits for what must come; only a fault makes it wait for long.
bool comes(const std::function<bool()>& condition) {
  for (const Stopwatch time; time.seconds() < 60;) {
    if (condition()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return false;
}

/// Connections of all ranks to all others.
std::vector<std::vector<Socket>> connections(int32_t ranks) {
  std::vector<std::unique_ptr<PeerListener>> listeners;
  std::vector<PeerAddress> addresses;
  for (int32_t r = 0; r < ranks; ++r) {
    listeners.push_back(std::make_unique<PeerListener>(r));
    addresses.push_back(listeners.back()->address());
  }
  std::vector<std::vector<Socket>> all(static_cast<size_t>(ranks));
  std::vector<std::thread> threads;
  for (size_t r = 0; r < all.size(); ++r) {
    threads.emplace_back([&, r] { all[r] = listeners[r]->meet(addresses, 60); });
  }
  for (std::thread& thread : threads) thread.join();
  return all;
}

/// What one rank reports.
class WatchedRank {
 public:
  WatchedRank(int32_t rank, std::vector<Socket> peers, double least_stall_s = 0) {
    std::vector<std::string> hosts;
    for (size_t r = 0; r < peers.size(); ++r) hosts.push_back("h" + std::to_string(r));
    WatchdogCalls calls;
    calls.failed = [this](const PeerFailure& failure) {
      const std::lock_guard lock(mutex_);
      if (line_.empty()) line_ = failure.line();
    };
    calls.point = [] { return kPoint; };
    calls.in_call_since = [this] {
      return mpi_hangs_since > 0 ? mpi_hangs_since.load() : steady_seconds();
    };
    calls.pieces = &pieces;
    calls.least_stall_s = least_stall_s;
    watchdog =
        std::make_unique<Watchdog>(rank, std::move(hosts), std::move(peers), std::move(calls));
  }
  std::string line() const {
    const std::lock_guard lock(mutex_);
    return line_;
  }

  std::atomic<double> mpi_hangs_since = 0;
  PieceCounts pieces;

 private:
  mutable std::mutex mutex_;
  std::string line_;

 public:
  std::unique_ptr<Watchdog> watchdog;  // ends first
};

std::vector<std::unique_ptr<WatchedRank>> watched_ranks(int32_t count, double least_stall_s = 0) {
  std::vector<std::unique_ptr<WatchedRank>> ranks;
  auto all = connections(count);
  for (int32_t r = 0; r < count; ++r) {
    ranks.push_back(
        std::make_unique<WatchedRank>(r, std::move(all[static_cast<size_t>(r)]), least_stall_s));
  }
  return ranks;
}

}  // namespace

TEST_CASE("silence: a rank without a sign for longer than the limit") {
  SilenceWatch watch(3);
  CHECK(!watch.look(50));  // no limit
  watch.set_limit(8, 100);
  for (double now = 100; now <= 130; now += 0.5) {
    watch.heard(0, now);
    watch.heard(1, now);
    if (now <= 112) watch.heard(2, now);
    const auto silent = watch.look(now);
    INFO(now);
    REQUIRE(silent.has_value() == (now > 120));
    if (silent) CHECK((silent->rank == 2 && silent->seconds == now - 112));
  }
  watch.left(2);
  CHECK(!watch.look(130.5));
  watch.set_limit(40, 131);  // it does not come back
  CHECK(!watch.look(135));
}

TEST_CASE("silence: a shorter limit begins when it is set") {
  SilenceWatch watch(2);
  watch.set_limit(20, 100);  // beats come every 2.5 s
  watch.heard(0, 102);
  watch.heard(1, 100);
  watch.set_limit(1, 102);
  for (int tenths = 1; tenths <= 12; ++tenths) {
    const double now = 102 + tenths / 10.0;
    watch.heard(0, now);
    const auto silent = watch.look(now);
    INFO(now);
    REQUIRE(silent.has_value() == (tenths > 10));
    if (silent) CHECK(silent->rank == 1);
  }
}

TEST_CASE("silence: of several silent ranks\\, the one that is silent for longest") {
  SilenceWatch watch(3);
  watch.set_limit(4, 0);
  for (double now = 0; now <= 20; now += 0.5) {
    watch.heard(0, now);
    if (now <= 2) watch.heard(2, now);
    if (now <= 1) watch.heard(1, now);
    if (const auto silent = watch.look(now)) CHECK(silent->rank == 1);
  }
}

TEST_CASE("silence: whoever was stopped itself gives the others the limit again") {
  SilenceWatch watch(2);
  watch.set_limit(8, 0);
  watch.heard(0, 1e9);
  CHECK(!watch.look(1));
  CHECK(!watch.look(300));  // no look for 299 s
  for (double now = 301; now < 308; now += 1) CHECK(!watch.look(now));
  CHECK(watch.look(309));
  // What is heard afterwards of the time before, such as a call that has not come back since.
  SilenceWatch own(1);
  own.set_limit(8, 0);
  const auto look = [&](double now) {
    own.heard(0, 0.5);
    return own.look(now);
  };
  CHECK(!look(1));
  for (double now = 300; now < 308; now += 1) CHECK(!look(now));
  const auto silent = look(309);
  REQUIRE(silent);
  CHECK(silent->seconds == 9);
}

TEST_CASE("silence: a rank that is stopped most of the time gives signs in between") {
  for (const double stopped : {0.5, 5.0, 7.0}) {  // seconds, at a limit of 8
    SilenceWatch own(2), other(2);
    own.set_limit(8, 0);
    other.set_limit(8, 0);
    double until = 0.1;
    for (double now = 0; now < 400; now += 0.05) {
      own.heard(0, now);
      other.heard(1, now);
      REQUIRE(!own.look(now));
      if (now > until && now < until + stopped) continue;  // rank 1 is stopped
      if (now >= until + stopped) until = now + 0.1;
      if (own.must_beat(now)) other.heard(0, now);
      if (other.must_beat(now)) own.heard(1, now);
      REQUIRE(!other.look(now));
    }
  }
}

TEST_CASE("silence: eight beats in the limit") {
  SilenceWatch watch(2);
  CHECK(!watch.must_beat(1));
  watch.set_limit(8, 1);
  int beats = 0;
  for (double now = 1; now < 81; now += 0.25) beats += watch.must_beat(now);
  CHECK(beats == 80);
}

TEST_CASE("watchdog: ranks that leave in order are no failure") {
  auto ranks = watched_ranks(4);
  for (auto& rank : ranks) rank->watchdog->watch(60);
  for (const int r : {0, 1, 2}) ranks[static_cast<size_t>(r)]->watchdog->say_goodbye();
  REQUIRE(comes([&] { return ranks[3]->watchdog->all_have_left(); }));
  for (const int r : {0, 1, 2}) CHECK(!ranks[static_cast<size_t>(r)]->watchdog->all_have_left());
  ranks[3]->watchdog->say_goodbye();
  REQUIRE(comes([&] { return ranks[0]->watchdog->all_have_left(); }));
  ranks[2]->watchdog.reset();
  ranks[0]->watchdog.reset();
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  for (const auto& rank : ranks) CHECK(rank->line().empty());
}

TEST_CASE("watchdog: a connection that ends without a goodbye names its rank") {
  auto ranks = watched_ranks(4);
  ranks[2]->watchdog.reset();
  for (const int r : {0, 1, 3}) {
    INFO(r);
    REQUIRE(comes([&] { return !ranks[static_cast<size_t>(r)]->line().empty(); }));
    CHECK(ranks[static_cast<size_t>(r)]->line() == "rank 2 (host h2) died, in gather 3 of step 7");
  }
}

TEST_CASE("watchdog: a rank that gives no sign is named by all\\, and no other") {
  auto all = connections(3);
  // Rank 1 has connections that nobody serves: its process is stopped.
  WatchedRank first(0, std::move(all[0])), last(2, std::move(all[2]));
  first.watchdog->watch(0.3);
  last.watchdog->watch(0.3);
  for (const WatchedRank* rank : {&first, &last}) {
    REQUIRE(comes([&] { return !rank->line().empty(); }));
    INFO(rank->line());
    CHECK(rank->line().starts_with("rank 1 (host h1) gave no sign of life for 0."));
    CHECK(rank->line().ends_with(" s, in gather 3 of step 7"));
  }
}

TEST_CASE("watchdog: what a rank tells reaches all\\, also if it ends at once") {
  auto ranks = watched_ranks(5);
  PeerFailure failure;
  failure.rank = 3;
  failure.host = "h3";
  failure.code = ExitCode::input;
  failure.detail = "step 3: the loss is not finite";
  ranks[3]->watchdog->tell(failure);
  ranks[3]->watchdog.reset();
  for (const auto& rank : ranks) {
    if (rank == ranks[3]) continue;
    REQUIRE(comes([&] { return !rank->line().empty(); }));
    CHECK(rank->line() == "rank 3 (host h3): step 3: the loss is not finite");
  }
}

TEST_CASE("watchdog: a rank in which MPI hangs says so itself") {
  auto ranks = watched_ranks(2);
  ranks[0]->watchdog->watch(600);
  ranks[1]->watchdog->watch(0.3);
  ranks[1]->mpi_hangs_since = steady_seconds() - 10;
  REQUIRE(comes([&] { return !ranks[1]->line().empty(); }));
  CHECK(ranks[1]->line().starts_with("rank 1 (host h1): MPI has not come back from a call for "));
  CHECK(ranks[0]->line().empty());
}

/// Each of the two has sent the other a piece, which has not arrived.
void stall(std::vector<std::unique_ptr<WatchedRank>>& ranks, int32_t a, int32_t b) {
  for (const auto& [own, other] : {std::pair(a, b), std::pair(b, a)}) {
    PieceCounts& pieces = ranks[static_cast<size_t>(own)]->pieces;
    pieces.sends(4, other);
    pieces.expects(4, other, {CommKind::exchange, {7, 5}});
  }
}

TEST_CASE("watchdog: messages that stand still between living ranks are judged by rank 0") {
  auto ranks = watched_ranks(4);
  for (int32_t other : {0, 1, 3}) stall(ranks, 2, other);
  for (auto& rank : ranks) rank->watchdog->watch(0.3);
  REQUIRE(comes([&] { return !ranks[0]->line().empty(); }));
  for (const auto& rank : ranks) CHECK((rank == ranks[0] || rank->line().empty()));
  INFO(ranks[0]->line());
  CHECK(ranks[0]->line().starts_with(
      "rank 2 (host h2) has moved no message to or from rank 0 (host h0) and 2 more ranks for 0."));
  CHECK(ranks[0]->line().find(" s, in exchange 5 of step 7, though all") != std::string::npos);
}

TEST_CASE(
    "watchdog: a piece that nobody has sent yet is waited for\\, and a slow link has longer") {
  auto ranks = watched_ranks(2, 600);  // seconds of the slow link
  ranks[0]->pieces.expects(4, 1, kPoint);
  for (auto& rank : ranks) rank->watchdog->watch(0.2);
  std::this_thread::sleep_for(std::chrono::milliseconds(800));
  for (const auto& rank : ranks) CHECK(rank->line().empty());
  stall(ranks, 0, 1);
  std::this_thread::sleep_for(std::chrono::milliseconds(800));
  for (const auto& rank : ranks) CHECK(rank->line().empty());
}

TEST_CASE("watchdog: where MPI hangs\\, no network is blamed") {
  auto ranks = watched_ranks(2);
  stall(ranks, 0, 1);
  ranks[1]->mpi_hangs_since = steady_seconds();
  for (auto& rank : ranks) rank->watchdog->watch(0.3);
  for (const Stopwatch time; time.seconds() < 1.2;) {
    for (const auto& rank : ranks) REQUIRE(rank->line().empty());
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  REQUIRE(comes([&] { return !ranks[1]->line().empty(); }));
  CHECK(ranks[1]->line().starts_with("rank 1 (host h1): MPI has not come back from a call for "));
}

TEST_CASE("connections: a stranger is not taken for a rank") {
  PeerListener first(0), second(1);
  std::vector<PeerAddress> addresses{first.address(), second.address()};
  std::vector<PeerAddress> wrong = addresses;
  ++wrong[0].secret;
  std::vector<Socket> of_first, of_second;
  std::thread other([&] { of_second = second.meet(wrong, 0.2); });
  of_first = first.meet(addresses, 0.2);
  other.join();
  CHECK(!of_first[1].is_open());
  CHECK(!of_second[0].is_open());
}

TEST_CASE("connections: addresses that lead elsewhere are passed over") {
  PeerListener first(0), second(1), elsewhere(0);
  std::vector<PeerAddress> addresses{first.address(), second.address()};
  PeerAddress& called = addresses[0];
  called.hosts[1] = called.hosts[0];  // the first one has no listener at this port
  called.hosts[0] = 0x020000e0u;      // 224.0.0.2, which no connection leads to
  called.count = 2;
  std::vector<Socket> of_first, of_second;
  std::thread other([&] { of_second = second.meet(addresses, 30); });
  of_first = first.meet(addresses, 30);
  other.join();
  CHECK(of_first[1].is_open());
  CHECK(of_second[0].is_open());
}

}  // namespace hearth::test
