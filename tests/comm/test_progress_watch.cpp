// Messages that stand still between ranks that live: who notices, by a clock of the test, and who is
// named. Slow links, stopped ranks and ranks with other work are no alarm.
#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <deque>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "comm/peer_stall.h"
#include "comm/piece_counts.h"
#include "comm/progress_watch.h"

namespace hearth::test {
namespace {

constexpr double kLimit = 8, kBeat = 1;
constexpr CommPoint kPoint{CommKind::gather, {7, 3}};

/// What a rank makes of what rank 1 says with its beats.
class Listener {
 public:
  Listener() { watch_.set_beat(kBeat); }
  /// Whether nothing has moved for longer than the limit.
  bool hear(double now, PieceWait wait, bool is_sent = true, int64_t ended = 0) {
    return watch_.heard(1, wait, is_sent, ended, now) > kLimit;
  }

 private:
  ProgressWatch watch_;
};

PieceWait wait_for(int64_t group, int64_t arrived, int64_t ended) {
  return {group, arrived, ended, kPoint};
}

/// Two ranks that send each other pieces over a link that takes `piece_s` for each. Each rank's processor
/// runs for `awake_s` out of `awake_s + stopped_s`; rank 1's by half a period later.
class Pair {
 public:
  double piece_s = 0.1, awake_s = 1, stopped_s = 0;
  double cut_at = std::numeric_limits<double>::infinity();
  double rank_1_begins_at = 0;  // until then it has other work

  /// When one of them noticed something within so many seconds.
  std::optional<double> runs(double seconds) {
    for (Side& side : sides_) side.watch.set_beat(kBeat);
    for (double now = 0; now < seconds; now += 0.05) {
      for (size_t r : {0, 1}) {
        if (is_awake(r, now) && step(r, now)) return now;
      }
    }
    return std::nullopt;
  }

 private:
  struct Side {
    PieceCounts counts;
    ProgressWatch watch;
    std::deque<double> coming;  // when the pieces that the other has sent will be here
    std::deque<PieceWait> said;
    double beat_at = -kBeat;
    int64_t arrived = 0, sent = 0;
  };

  bool is_awake(size_t rank, double now) const {
    const double period = awake_s + stopped_s;
    const double at = now + (rank == 1 ? period / 2 : 0);
    return stopped_s == 0 || at - period * std::floor(at / period) < awake_s;
  }

  // True: it notices that nothing moves.
  bool step(size_t rank, double now) {
    Side& own = sides_[rank];
    Side& other = sides_[1 - rank];
    bool alarm = false;
    for (; !own.said.empty(); own.said.pop_front()) {
      const PieceWait& wait = own.said.front();
      const bool is_sent = own.counts.has_sent_more(wait.group, 0, wait.arrived);
      alarm |= own.watch.heard(0, wait, is_sent, own.counts.ended(), now) > kLimit;
    }
    if (rank == 0 || now >= rank_1_begins_at) {  // one piece each way at a time
      while (!own.coming.empty() && own.coming.front() <= now) {
        own.coming.pop_front();
        own.counts.arrived(1, 0);
        own.counts.sent();
        ++own.arrived;
      }
      if (own.sent == own.arrived) {
        own.counts.expects(1, 0, kPoint);
        own.counts.sends(1, 0);
        ++own.sent;
      }
      // What both have handed over is on its way.
      const auto under_way = static_cast<int64_t>(own.coming.size());
      if (own.sent > own.arrived && other.sent > own.arrived + under_way && now < cut_at) {
        own.coming.push_back(now + piece_s);
      }
    }
    if (now - own.beat_at >= kBeat) {
      own.beat_at = now;
      for (const PieceWait& wait : own.counts.waits(0)) other.said.push_back(wait);
    }
    return alarm;
  }

  Side sides_[2];
};

TEST_CASE("progress: a piece that was sent and does not come for longer than the limit") {
  Listener rank;
  for (double now = 100; now <= 108; now += kBeat) CHECK(!rank.hear(now, wait_for(5, 40, 90)));
  CHECK(rank.hear(109, wait_for(5, 40, 90)));
}

TEST_CASE("progress: a piece that was not sent is no alarm\\, however long it takes") {
  Listener rank;
  for (double now = 0; now <= 1000; now += kBeat)
    REQUIRE(!rank.hear(now, wait_for(5, 40, 90), false));
  // From when it is sent, it has the whole limit.
  for (double now = 1001; now <= 1009; now += kBeat) REQUIRE(!rank.hear(now, wait_for(5, 40, 90)));
  CHECK(rank.hear(1010, wait_for(5, 40, 90)));
}

TEST_CASE("progress: whatever ends at one of the two ranks begins the limit again") {
  const auto of_arrived = [](int64_t n) { return std::pair(wait_for(5, n, 90), int64_t{0}); };
  const auto of_other = [](int64_t n) { return std::pair(wait_for(5, 40, n), int64_t{0}); };
  const auto of_own = [](int64_t n) { return std::pair(wait_for(5, 40, 90), n); };
  for (const auto& moved : {+of_arrived, +of_other, +of_own}) {
    Listener rank;
    for (int second = 0; second <= 400; ++second) {  // one piece in 8 s
      const auto [wait, own] = moved(second / 8);
      REQUIRE(!rank.hear(second, wait, true, own));
    }
  }
}

TEST_CASE("progress: groups are apart\\, and so are ranks") {
  ProgressWatch watch;
  watch.set_beat(kBeat);
  for (double now = 0; now <= 9; now += kBeat) {
    CHECK(watch.heard(1, wait_for(5, 40, 90), false, 0, now) ==
          0);  // this one waits for other work
    CHECK(watch.heard(2, wait_for(6, 40, static_cast<int64_t>(now)), true, 0, now) == 0);
    CHECK(watch.heard(1, wait_for(6, 40, 90), true, 0, now) == now);
  }
}

TEST_CASE("progress: without beats no time counts") {
  ProgressWatch watch;
  for (double now = 0; now <= 1000; now += 1)
    REQUIRE(watch.heard(1, wait_for(5, 40, 90), true, 0, now) == 0);
}

TEST_CASE("progress: beats that come at once after a stop are no time") {
  Listener rank;
  CHECK(!rank.hear(0, wait_for(5, 40, 90)));
  for (int i = 0; i < 20; ++i) CHECK(!rank.hear(7.9, wait_for(5, 40, 90)));  // counts two beats
  for (double now = 8.9; now < 14; now += kBeat) CHECK(!rank.hear(now, wait_for(5, 40, 90)));
  CHECK(rank.hear(14.9, wait_for(5, 40, 90)));
}

TEST_CASE("progress: slow links\\, stopped ranks and other work are no alarm; a cut is one") {
  SECTION("a piece that takes almost the limit") {
    Pair pair;
    pair.piece_s = 7.5;
    CHECK(!pair.runs(600));
  }
  SECTION("ranks that are stopped most of the time") {
    for (const double stopped : {0.9, 3.0, 6.0}) {
      Pair pair;
      pair.awake_s = 0.3;
      pair.stopped_s = stopped;
      INFO(stopped);
      CHECK(!pair.runs(600));
    }
  }
  SECTION("a rank with other work for ten minutes") {
    Pair pair;
    pair.rank_1_begins_at = 600;
    CHECK(!pair.runs(700));
  }
  SECTION("a cut is noticed within the limit and three beats") {
    for (const double cut : {50.0, 50.3, 57.1}) {
      Pair pair;
      pair.cut_at = cut;
      const auto noticed = pair.runs(600);
      REQUIRE(noticed);
      INFO(*noticed - cut);
      CHECK(*noticed > cut + kLimit);
      CHECK(*noticed < cut + kLimit + 3 * kBeat);
    }
  }
  SECTION("a cut while the ranks are stopped in turns") {
    Pair pair;
    pair.awake_s = pair.stopped_s = 2;
    pair.cut_at = 50;
    const auto noticed = pair.runs(600);
    REQUIRE(noticed);
    CHECK(*noticed < 50 + 4 * kLimit);
  }
}

TEST_CASE("pieces: a rank waits for what it expects\\, in the order of operations") {
  PieceCounts counts;
  const CommPoint next{CommKind::exchange, {7, 4}};
  counts.expects(2, 1, kPoint);
  counts.expects(2, 1, kPoint);
  counts.expects(2, 1, next);
  counts.expects(3, 1, next);
  counts.expects(2, 0, kPoint);
  CHECK(counts.waits(3).empty());
  REQUIRE(counts.waits(1).size() == 2);
  CHECK(counts.waits(1)[0].at == kPoint);
  CHECK(counts.waits(1)[1].at == next);
  counts.arrived(2, 1);
  CHECK(counts.waits(1)[0].at == kPoint);
  counts.arrived(2, 1);
  counts.sent();
  const PieceWait wait = counts.waits(1)[0];
  CHECK((wait.group == 2 && wait.arrived == 2 && wait.ended == 3));
  CHECK(wait.at == next);
  counts.arrived(2, 1);
  REQUIRE(counts.waits(1).size() == 1);
  CHECK(counts.waits(1)[0].group == 3);
  CHECK(counts.waits(0).size() == 1);
}

TEST_CASE("pieces: what a rank has sent\\, by group and rank") {
  PieceCounts counts;
  CHECK(!counts.has_sent_more(2, 1, 0));
  counts.sends(2, 1);
  CHECK(counts.has_sent_more(2, 1, 0));
  CHECK(!counts.has_sent_more(2, 1, 1));
  CHECK(!counts.has_sent_more(3, 1, 0));
  CHECK(!counts.has_sent_more(2, 0, 0));
  CHECK(counts.ended() == 0);
}

/// Rank 0, with the limit of the others.
StallJudge judge() {
  StallJudge judge({"a", "b", "c", "d"});
  judge.set_limit(kLimit, kBeat);
  return judge;
}

TEST_CASE(
    "stalls: the rank that most of them have in common is named\\, when one reaches the limit") {
  const CommPoint later{CommKind::exchange, {7, 5}};
  StallJudge rank_0 = judge();
  CHECK(!rank_0.note({3, 0, 7, kPoint}, 96));  // these moved on
  CHECK(!rank_0.note({3, 1, 7, kPoint}, 96));
  CHECK(!rank_0.note({0, 2, 7, kPoint}, 100.1));
  CHECK(!rank_0.note({2, 0, 7.5, later}, 100.2));
  CHECK(!rank_0.note({1, 2, 6, later}, 100.3));
  CHECK(!rank_0.note({3, 2, 8, later}, 100.9));
  CHECK(!rank_0.note({0, 2, 8, kPoint}, 101));
  const auto failure = rank_0.note({2, 0, 8.5, later}, 101.2);
  REQUIRE(failure);
  CHECK(failure->rank == 2);
  CHECK(failure->fault == PeerFault::cut_off);
  CHECK(failure->code == ExitCode::device);
  CHECK(
      failure->line() ==
      "rank 2 (host c) has moved no message to or from rank 0 (host a) and 2 more ranks for 8.5 s, "
      "in gather 3 of step 7, though all give signs of life; check the network that MPI uses");
}

TEST_CASE("stalls: of two ranks the last") {
  StallJudge rank_0 = judge();
  const auto failure = rank_0.note({3, 1, 8.5, kPoint}, 5);
  REQUIRE(failure);
  CHECK(failure->line() ==
        "rank 3 (host d) has moved no message to or from rank 1 (host b) for 8.5 s, in gather 3 of "
        "step 7, though all give signs of life; check the network that MPI uses");
}

TEST_CASE("stalls: told from half of the limit on\\, never without one") {
  StallJudge rank = judge();
  CHECK(!rank.must_tell(0));
  CHECK(!rank.must_tell(4));
  CHECK(rank.must_tell(4.5));
  rank.set_limit(0, 0);
  CHECK(!rank.must_tell(1000));
  CHECK(!rank.note({1, 0, 1000, kPoint}, 1));
}

}  // namespace
}  // namespace hearth::test
