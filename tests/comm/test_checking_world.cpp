#include <catch2/catch_test_macros.hpp>
#include <functional>

#include "base/stopwatch.h"
#include "support/thread_ranks.h"

namespace hearth::test {
namespace {

// What a rank with a fault does in place of the others' operation.
enum class Fault { none, skips, swaps, size, kind, splits, zero };

// Six operations, each of 16 bytes or none between any two ranks; the last rank has the fault.
void with_fault(World& world, Fault fault) {
  const auto comm = world.everyone();
  const int32_t n = comm->size(), me = comm->rank();
  std::vector<std::byte> out(64), in(64 * static_cast<size_t>(n));
  const auto run = [&](int32_t number, bool exchanges, size_t size) {
    std::vector<ConstBytes> to(static_cast<size_t>(n), {out.data(), size});
    std::vector<Bytes> from;
    for (int32_t r = 0; r < n; ++r) {
      from.push_back({in.data() + 64 * static_cast<size_t>(r), number == 3 ? 0u : 16u});
    }
    // Sizes of what stays here are this rank's own affair.
    to[static_cast<size_t>(me)].bytes = from[static_cast<size_t>(me)].bytes;
    if (exchanges) {
      comm->exchange({5, number}, to, from)->wait();
    } else {
      if (size != 16) from[static_cast<size_t>(me)].bytes = size;
      comm->gather({5, number}, {out.data(), size}, from)->wait();
    }
  };
  const bool faulty = me == n - 1;
  for (int32_t number = 1; number <= 6; ++number) {
    const bool here = faulty && number == 3;
    if (here && fault == Fault::zero) continue;  // has no byte to send: does not take part
    if (faulty && number == 2) {
      if (fault == Fault::skips) continue;
      if (fault == Fault::swaps) {
        run(3, true, 0);
        continue;
      }
      if (fault == Fault::size) {
        run(2, false, 12);
        continue;
      }
      if (fault == Fault::kind) {
        run(2, true, 16);
        continue;
      }
      if (fault == Fault::splits) {
        std::vector<Outgoing> to;
        std::vector<Incoming> from;
        for (int32_t r = 0; r < n; ++r) {
          to.push_back({r, {out.data(), 16}});
          from.push_back({r, {in.data(), 16}});
        }
        comm->transfer({5, 2}, to, from)->wait();
        continue;
      }
    }
    if (number == 3) {
      run(3, true, 0);
    } else {
      run(number, false, 16);
    }
  }
}

// Leaves out what has no bytes, as a transport might.
class ForgetfulWorld final : public World {
 public:
  explicit ForgetfulWorld(std::unique_ptr<World> world)
      : World(world->rank(), world->size()), world_(std::move(world)) {}
  const std::string& host(int32_t rank) const override { return world_->host(rank); }
  PeerError fail(const Error& error) override { return world_->fail(error); }
  void beat() override { world_->beat(); }
  std::unique_ptr<Communicator> group(std::span<const int32_t> ranks) override {
    struct Forgetful final : Communicator {
      Forgetful(std::unique_ptr<Communicator> c, int32_t rank, std::shared_ptr<SentBytes> s)
          : Communicator(c->ranks(), rank, std::move(s)), inner(std::move(c)) {}
      std::unique_ptr<Pending> start(Operation operation) override {
        if (rank() == 0) {
          std::erase_if(operation.out, [](const Outgoing& m) { return m.bytes.bytes == 0; });
        }
        return inner->run(std::move(operation));
      }
      std::unique_ptr<Communicator> inner;
    };
    return std::make_unique<Forgetful>(world_->group(ranks), rank(), sent());
  }

 private:
  const std::unique_ptr<World> world_;
};

RankOptions checked_ranks(int32_t ranks) {
  RankOptions options;
  options.world.ranks = ranks;
  options.world.silence_s = 0.5;
  options.checked = true;
  return options;
}

struct Expected {
  Fault fault;
  std::vector<std::string> parts;  // of the line, in any order
};

}  // namespace

TEST_CASE("checked ranks: a run without a fault has none") {
  for (const int32_t ranks : {1, 2, 3, 5}) {
    CHECK(first_line(run_ranks(checked_ranks(ranks), [](World& world) {
            with_fault(world, Fault::none);
          })).empty());
  }
}

TEST_CASE("checked ranks: every fault ends all ranks with rank\\, step\\, number and field") {
  for (const int32_t ranks : {2, 3, 5, 8}) {
    const std::string faulty = "rank " + std::to_string(ranks - 1);
    const std::vector<Expected> faults = {
        // The others are in gather 2, this rank in exchange 3.
        {Fault::skips, {"gather 2 of step 5", "exchange 3 of step 5", "the number differs"}},
        {Fault::swaps, {"gather 2 of step 5", "exchange 3 of step 5", "the number differs"}},
        {Fault::size, {"gather 2 of step 5", "12", "16", "bytes differ"}},
        {Fault::kind, {"gather 2 of step 5", "exchange 2 of step 5", "the kind differs"}},
        {Fault::splits, {"gather 2 of step 5", "transfer 2 of step 5", "the kind differs"}},
        {Fault::zero, {"exchange 3 of step 5", "gather 4 of step 5", "the number differs"}},
    };
    for (const Expected& expected : faults) {
      const Stopwatch time;
      const std::vector<RankEnd> ends =
          run_ranks(checked_ranks(ranks), [&](World& world) { with_fault(world, expected.fault); });
      CHECK(time.seconds() < 60);  // it does not hang
      for (const RankEnd& end : ends) {
        INFO(ranks << " ranks: " << end.line);
        CHECK(end.code == ExitCode::internal);
        CHECK(end.line == ends[0].line);
        CHECK(end.line.find(faulty) != std::string::npos);
        for (const std::string& part : expected.parts) {
          CHECK(end.line.find(part) != std::string::npos);
        }
      }
    }
  }
}

TEST_CASE("checked ranks: the records alone find what differs") {
  // Without messages of its own an operation can only be told apart by its record.
  const std::vector<RankEnd> ends = run_ranks(checked_ranks(3), [](World& world) {
    const auto comm = world.everyone();
    comm->transfer({1, world.rank() == 2 ? 8 : 7}, {}, {})->wait();
  });
  for (const RankEnd& end : ends) {
    INFO(end.line);
    CHECK(end.code == ExitCode::internal);
    CHECK(end.line.find("the number differs") != std::string::npos);
    CHECK(end.line.find("transfer 8 of step 1") != std::string::npos);
  }
  // A message that only its receiver knows of, or only its sender.
  for (const bool receives : {false, true}) {
    const std::vector<RankEnd> odd = run_ranks(checked_ranks(2), [&](World& world) {
      const auto comm = world.everyone();
      std::byte byte{};
      std::vector<Outgoing> to;
      std::vector<Incoming> from;
      if (world.rank() == 1 && receives) from.push_back({0, {&byte, 1}});
      if (world.rank() == 1 && !receives) to.push_back({0, {&byte, 1}});
      comm->transfer({1, 7}, to, from)->wait();
    });
    CHECK(odd[0].line == odd[1].line);
    CHECK(odd[0].line.find("in transfer 7 of step 1: the messages differ") != std::string::npos);
  }
}

TEST_CASE("checked ranks: the last operation left out") {
  const std::vector<RankEnd> ends = run_ranks(checked_ranks(3), [](World& world) {
    const auto comm = world.everyone();
    std::vector<Bytes> none(3);
    for (int32_t n = 0; n < (world.rank() == 1 ? 2 : 3); ++n) {
      comm->gather({1, n}, {}, none)->wait();
    }
  });
  CHECK(ends[0].line.find("rank 1 (host ") == 0);
  CHECK(ends[0].line.find("died, in gather 2 of step 1") != std::string::npos);
  CHECK(ends[2].line == ends[0].line);
}

TEST_CASE("checked ranks: messages without bytes that a transport does not send") {
  RankOptions options = checked_ranks(3);
  options.checked = false;
  const std::vector<RankEnd> ends = run_ranks(options, [](World& world) {
    // The program is given the world by reference: a second one of the same rank stands below.
    struct Borrowed final : World {
      explicit Borrowed(World& w) : World(w.rank(), w.size()), world(w) {}
      const std::string& host(int32_t rank) const override { return world.host(rank); }
      PeerError fail(const Error& error) override { return world.fail(error); }
      void beat() override { world.beat(); }
      std::unique_ptr<Communicator> group(std::span<const int32_t> ranks) override {
        return world.group(ranks);
      }
      World& world;
    };
    const auto checked =
        make_checking_world(std::make_unique<ForgetfulWorld>(std::make_unique<Borrowed>(world)));
    with_fault(*checked, Fault::none);
  });
  for (const RankEnd& end : ends) {
    INFO(end.line);
    CHECK(end.code == ExitCode::internal);
    CHECK(end.line.find("of step 5") != std::string::npos);
  }
}

}  // namespace hearth::test
