#include <catch2/catch_test_macros.hpp>
#include <chrono>
#include <thread>

#include "base/sanitized.h"
#include "base/stopwatch.h"
#include "comm/rank_programs.h"
#include "support/raises.h"
#include "support/thread_ranks.h"

namespace hearth::test {
namespace {

RankOptions ranks_of(int32_t ranks, bool checked = false) {
  RankOptions options;
  options.world.ranks = ranks;
  options.checked = checked;
  return options;
}

// Time that jumps to the moment that a thread sleeps for.
class JumpingClock final : public LinkClock {
 public:
  double now() override { return now_; }
  void sleep_until(double seconds) override { now_ = std::max(now_, seconds); }

 private:
  double now_ = 0;
};

const std::vector<std::byte> kMessage(1000, std::byte{5});

}  // namespace

TEST_CASE("thread ranks: programs on any number of ranks, checked and not") {
  for (const int32_t ranks : {1, 2, 3, 5, 8}) {
    for (const bool checked : {false, true}) {
      for (const NamedProgram& program : rank_programs()) {
        INFO(program.name << " on " << ranks << (checked ? " ranks, checked" : " ranks"));
        CHECK(first_line(run_ranks(ranks_of(ranks, checked), program.run)).empty());
      }
    }
  }
}

TEST_CASE("thread ranks: links of any speed change no byte") {
  RankOptions options = ranks_of(3);
  options.world.links = {2e7, 1e-4};
  for (const NamedProgram& program : rank_programs()) {
    INFO(program.name);
    CHECK(first_line(run_ranks(options, program.run)).empty());
  }
}

TEST_CASE("thread ranks: a rank that fails ends all\\, and all name it") {
  for (const int32_t ranks : {2, 3, 5, 8}) {
    for (const FailingProgram& program : failing_programs(ranks)) {
      for (const bool checked : {false, true}) {
        INFO(program.name << " on " << ranks << (checked ? " ranks, checked" : " ranks"));
        RankOptions options = ranks_of(ranks, checked);
        options.says = program.says;
        const Stopwatch time;
        const std::vector<RankEnd> ends = run_ranks(options, program.run);
        CHECK(time.seconds() < 60);  // it does not hang
        for (int32_t r = 0; r < ranks; ++r) {
          if (r == program.rank && !program.says) continue;
          const RankEnd& end = ends[static_cast<size_t>(r)];
          INFO("rank " << r << ": " << end.line);
          CHECK(end.code == program.code);
          CHECK(end.line.find("rank " + std::to_string(program.rank) + " (host ") == 0);
          CHECK(end.line.find(program.line) != std::string::npos);
        }
      }
    }
  }
}

TEST_CASE("thread ranks: a silent rank is found\\, and a busy one that beats is not") {
  RankOptions options = ranks_of(3);
  options.world.silence_s = kSanitized ? 1.0 : 0.3;
  const double silence = options.world.silence_s;
  const auto program = [&](bool beats) {
    return [=](World& world) {
      const auto comm = world.everyone();
      if (world.rank() == 1) {
        const Stopwatch time;
        while (time.seconds() < 3 * silence) {
          std::this_thread::sleep_for(std::chrono::milliseconds(10));
          if (beats) world.beat();
        }
      }
      std::vector<Bytes> none(3);
      comm->gather({7, 2}, {}, none)->wait();
    };
  };
  CHECK(first_line(run_ranks(options, program(true))).empty());
  const std::vector<RankEnd> ends = run_ranks(options, program(false));
  for (const RankEnd& end : ends) {  // also the silent one, when it comes to itself
    CHECK(end.code == ExitCode::device);
    CHECK(end.line.find("rank 1 (host ") == 0);
    CHECK(end.line.find(") gave no sign of life for ") != std::string::npos);
    CHECK(end.line.find(" s, in gather 2 of step 7") != std::string::npos);
  }
}

TEST_CASE("thread ranks: a rank that is away is not silent\\, and is again when it is back") {
  RankOptions options = ranks_of(2);
  options.world.silence_s = 0;
  const double silence = kSanitized ? 1.0 : 0.3;
  const auto program = [&](bool hangs) {
    return [=](World& world) {
      world.watch(silence);
      const auto comm = world.everyone();
      const auto idle = [&](double seconds) {
        for (const Stopwatch time; time.seconds() < seconds;) {
          std::this_thread::sleep_for(std::chrono::milliseconds(10));
        }
      };
      if (world.rank() == 0) {
        {
          const Away away(world);
          const Away twice(world);
          idle(3 * silence);
        }
        if (hangs) idle(3 * silence);
      }
      std::vector<Bytes> none(2);
      comm->gather({1, 1}, {}, none)->wait();
    };
  };
  CHECK(first_line(run_ranks(options, program(false))).empty());
  const std::string line = first_line(run_ranks(options, program(true)));
  CHECK(line.find("rank 0 (host ") == 0);
  CHECK(line.find(") gave no sign of life for ") != std::string::npos);
}

TEST_CASE("thread ranks: ranks that wait for one another do not hang") {
  RankOptions options = ranks_of(2);
  options.world.silence_s = 0.2;
  const std::vector<RankEnd> ends = run_ranks(options, [](World& world) {
    const auto comm = world.everyone();
    std::byte byte{};
    comm->receive({1, 1}, 1 - comm->rank(), {&byte, 1})->wait();
  });
  for (const RankEnd& end : ends) {
    CHECK(end.code == ExitCode::internal);
    CHECK(end.line.find("in receive 1 of step 1, and all ranks wait for one another") !=
          std::string::npos);
  }
}

TEST_CASE("thread ranks: an operation that is given up is the end of its rank") {
  RankOptions options = ranks_of(3);
  options.says = false;
  const std::vector<RankEnd> ends = run_ranks(options, [](World& world) {
    const auto comm = world.everyone();
    std::byte byte{};
    if (world.rank() == 2) {
      static_cast<void>(comm->receive({1, 1}, 0, {&byte, 1}));  // destroyed at once
      std::this_thread::sleep_for(std::chrono::milliseconds(300));
      return;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    if (world.rank() == 0) comm->send({1, 1}, 2, {&byte, 1})->wait();
    if (world.rank() == 1) comm->receive({1, 2}, 0, {&byte, 1})->wait();
  });
  CHECK(ends[0].line.find("rank 2 (host ") == 0);
  CHECK(ends[0].line.find("died, in send 1 of step 1") != std::string::npos);
  CHECK(ends[1].line == ends[0].line);
}

TEST_CASE("thread ranks: different sizes, labels and groups are a mismatch") {
  struct Fault {
    std::string line;
    RankProgram program;
  };
  const auto exchange_once = [](World& world, CommLabel label, size_t bytes) {
    const auto comm = world.everyone();
    std::vector<std::byte> memory(64);
    std::vector<ConstBytes> to(2, {memory.data(), bytes});
    std::vector<Bytes> from = {{memory.data() + 32, 8}, {memory.data() + 48, 8}};
    to[static_cast<size_t>(world.rank())].bytes = 8;
    comm->exchange(label, to, from)->wait();
  };
  const std::vector<Fault> faults = {{"the bytes differ: 9 are sent, 8 expected",
                                      [&](World& w) {
                                        exchange_once(w, {1, 1}, w.rank() == 1 ? 9 : 8);
                                      }},
                                     {"the number differs",
                                      [&](World& w) {
                                        exchange_once(w, {1, w.rank()}, 8);
                                      }},
                                     {"the step differs",
                                      [&](World& w) {
                                        exchange_once(w, {w.rank(), 1}, 8);
                                      }},
                                     {"group 0 of ranks", [](World& w) {
                                        const std::vector<int32_t> one = {0, 1}, other = {1, 0};
                                        const auto comm = w.group(w.rank() == 0 ? one : other);
                                        comm->receive({1, 1}, 1 - comm->rank(), {})->wait();
                                      }}};
  for (const Fault& fault : faults) {
    const std::vector<RankEnd> ends = run_ranks(ranks_of(2), fault.program);
    INFO(fault.line << ": " << first_line(ends));
    // The rank that made its group first may have got it.
    CHECK(first_line(ends).find(fault.line) != std::string::npos);
    CHECK((ends[0].code == ExitCode::internal || ends[1].code == ExitCode::internal));
  }
}

TEST_CASE("thread ranks: labels rise\\, and calls have a message for each rank") {
  auto worlds = make_thread_worlds({});
  const auto comm = worlds[0]->everyone();
  std::vector<Bytes> none(1);
  comm->gather({2, 5}, {}, none)->wait();
  CHECK_THROWS_AS(comm->gather({2, 5}, {}, none), std::logic_error);
  CHECK_THROWS_AS(comm->gather({1, 9}, {}, none), std::logic_error);
  CHECK_NOTHROW(comm->gather({3, 0}, {}, none)->wait());
  CHECK_THROWS_AS(comm->gather({3, 1}, {}, {}), std::logic_error);
  CHECK_THROWS_AS(comm->send({3, 2}, 0, {}), std::logic_error);
  CHECK_THROWS_AS(comm->send({3, 2}, 1, {}), std::logic_error);
  const std::vector<int32_t> twice = {0, 0}, outside = {0, 1};
  CHECK_THROWS_AS(worlds[0]->group(twice), std::logic_error);
  CHECK_THROWS_AS(worlds[0]->group(outside), std::logic_error);
}

TEST_CASE("thread ranks: a link passes messages one after the other\\, with its latency") {
  JumpingClock clock;
  ThreadWorldOptions options;
  options.ranks = 3;
  options.links = {1000, 0.25};  // a message takes 1.25 s
  options.clock = &clock;
  auto worlds = make_thread_worlds(options);
  const auto a = worlds[0]->everyone(), b = worlds[1]->everyone(), c = worlds[2]->everyone();
  std::vector<std::byte> in_b(1000), in_c(1000), in_a(1000);
  const ConstBytes out{kMessage.data(), kMessage.size()};

  // Out of rank 0 to both others: the second waits for the first. Into rank 0 meanwhile.
  const auto to_b = a->send({1, 1}, 1, out);
  const auto at_b = b->receive({1, 1}, 0, {in_b.data(), in_b.size()});
  const auto to_c = a->send({1, 2}, 2, out);
  const auto at_c = c->receive({1, 2}, 0, {in_c.data(), in_c.size()});
  const auto from_c = c->send({1, 3}, 0, out);
  const auto at_a = a->receive({1, 3}, 2, {in_a.data(), in_a.size()});
  CHECK_FALSE(at_b->reached());
  at_a->wait();
  CHECK(clock.now() == 1.25);
  CHECK(at_b->reached());
  CHECK(to_b->reached());
  CHECK_FALSE(at_c->reached());
  at_c->wait();
  CHECK(clock.now() == 2.25);
  CHECK(to_c->reached());
  CHECK(from_c->reached());
  CHECK(in_b == kMessage);
  CHECK(in_c == kMessage);

  // Two ranks to a third share the link into it.
  const auto from_a = a->send({1, 4}, 1, out), from_c_to_b = c->send({1, 5}, 1, out);
  const auto first = b->receive({1, 4}, 0, {in_b.data(), in_b.size()});
  const auto second = b->receive({1, 5}, 2, {in_b.data(), in_b.size()});
  first->wait();
  CHECK(clock.now() == 3.5);
  CHECK_FALSE(second->reached());
  second->wait();
  CHECK(clock.now() == 4.5);
  CHECK(from_a->reached());
  CHECK(from_c_to_b->reached());

  // A message without bytes has the latency alone, and what stays at a rank has none.
  const auto empty = a->send({1, 6}, 1, {});
  b->receive({1, 6}, 0, {})->wait();
  CHECK(clock.now() == 4.75);
  std::vector<Bytes> from(1, {in_a.data(), in_a.size()});
  const std::vector<int32_t> only = {0};
  const auto alone = worlds[0]->group(only);
  static_cast<void>(worlds[1]->group(only));
  static_cast<void>(worlds[2]->group(only));
  alone->gather({1, 1}, out, from)->wait();
  CHECK(clock.now() == 4.75);
  CHECK(empty->reached());
}

TEST_CASE("thread ranks: a rank that fails does not let others wait for a slow link") {
  ThreadWorldOptions options;
  options.ranks = 2;
  options.links = {1, 0};  // a message takes 1000 s
  auto worlds = make_thread_worlds(options);
  const auto a = worlds[0]->everyone(), b = worlds[1]->everyone();
  std::vector<std::byte> in(1000);
  const auto to = a->send({1, 1}, 1, {kMessage.data(), kMessage.size()});
  const auto at = b->receive({1, 1}, 0, {in.data(), in.size()});
  std::thread other([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    worlds[0]->fail(storage_error("disk full"));
  });
  const Stopwatch time;
  const Raised raised = raised_by([&] { at->wait(); });
  other.join();
  CHECK(time.seconds() < 60);  // it does not hang
  CHECK(raised.code == ExitCode::storage);
  CHECK(raised.says("): disk full"));
  CHECK(raised_by([&] { worlds[1]->beat(); }).says("disk full"));
  CHECK(raised_by([&] { b->send({1, 2}, 0, {}); }).says("disk full"));
  CHECK(worlds[1]->fail(numeric_error("later")).code() == ExitCode::storage);  // the first counts
}

}  // namespace hearth::test
