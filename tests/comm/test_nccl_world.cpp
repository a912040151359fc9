// Ranks with GPUs that send each other messages by NCCL, without a GPU: a fake of NCCL's functions moves
// the bytes.
#include <catch2/catch_test_macros.hpp>
#include <functional>
#include <memory>
#include <thread>

#include "base/stopwatch.h"
#include "comm/nccl_calls.h"
#include "comm/nccl_world.h"
#include "comm/rank_programs.h"
#include "support/fake_nccl.h"
#include "support/thread_ranks.h"

namespace hearth::test {
namespace {

struct NcclRun {
  std::vector<RankEnd> ends;
  std::vector<std::vector<std::string>> logs;
  std::vector<int> aborts;
};

using Plant = std::function<void(int32_t rank, FakeNccl& nccl)>;

/// `plant`: before a rank begins.
NcclRun run_on_nccl(int32_t ranks, bool checked, const RankProgram& program,
                    const Plant& plant = {}, bool says = true) {
  ThreadWorldOptions options;
  options.ranks = ranks;
  std::vector<std::unique_ptr<World>> worlds = make_thread_worlds(options);
  NcclRun run;
  run.ends.resize(worlds.size());
  run.logs.resize(worlds.size());
  run.aborts.resize(worlds.size());
  FakeFabric fabric;
  std::vector<std::unique_ptr<FakeNccl>> nccl;
  for (size_t r = 0; r < worlds.size(); ++r) nccl.push_back(std::make_unique<FakeNccl>(fabric));
  std::vector<std::thread> threads;
  for (size_t r = 0; r < worlds.size(); ++r) {
    threads.emplace_back([&, r] {
      if (plant) plant(static_cast<int32_t>(r), *nccl[r]);
      const std::unique_ptr<Device> device = nccl[r]->make_device();
      std::unique_ptr<World> world = make_nccl_world(*worlds[r], *device, *nccl[r]);
      if (checked) world = make_checking_world(std::move(world));
      run.ends[r] = end_of_rank(*world, program, says);
      world.reset();
      worlds[r].reset();  // this rank leaves
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (size_t r = 0; r < nccl.size(); ++r) {
    run.logs[r] = nccl[r]->log();
    run.aborts[r] = nccl[r]->aborts();
  }
  return run;
}

using Log = std::vector<std::string>;

}  // namespace

TEST_CASE("nccl: programs on any number of ranks\\, checked and not") {
  for (const int32_t ranks : {1, 2, 3, 5}) {
    for (const bool checked : {false, true}) {
      for (const NamedProgram& program : rank_programs()) {
        if (program.name == "two threads") continue;  // the world is for one
        INFO(program.name << " on " << ranks << (checked ? " ranks, checked" : " ranks"));
        const NcclRun run = run_on_nccl(ranks, checked, program.run);
        CHECK(first_line(run.ends).empty());
        for (const int aborts : run.aborts) CHECK(aborts == 0);
      }
    }
  }
}

TEST_CASE("nccl: messages without bytes are not sent\\, and peers are numbers of the group") {
  const NcclRun run = run_on_nccl(3, true, [](World& world) {
    const auto comm = world.group(std::vector<int32_t>{2, 0, 1});
    std::vector<std::byte> memory(64);
    const auto bytes = [&](size_t n) { return Bytes{memory.data(), n}; };
    const auto sent = [&](size_t n) { return ConstBytes{memory.data(), n}; };
    // Rank p of the group sends 10 p + q bytes to rank q, unless the sum is odd.
    const auto size = [](int32_t p, int32_t q) {
      return (p + q) % 2 != 0 ? size_t{0} : static_cast<size_t>(10 * p + q);
    };
    std::vector<ConstBytes> to;
    std::vector<Bytes> from;
    for (int32_t q = 0; q < 3; ++q) {
      to.push_back(sent(size(comm->rank(), q)));
      from.push_back(bytes(size(q, comm->rank())));
    }
    comm->exchange({1, 0}, to, from)->wait();
    comm->gather({1, 1}, {}, std::vector<Bytes>(3))->wait();
  });
  CHECK(first_line(run.ends).empty());
  CHECK(run.logs[2] == Log{"send 2 to 2", "receive 20 from 2", "end", "end"});
  CHECK(run.logs[0] == Log{"end", "end"});
  CHECK(run.logs[1] == Log{"send 20 to 0", "receive 2 from 0", "end", "end"});
}

TEST_CASE("nccl: a call that fails ends all ranks with 6\\, naming the rank and the call") {
  for (const char* call : {"get_unique_id", "comm_init_rank", "comm_get_async_error", "group_start",
                           "send", "receive", "group_end", "an operation"}) {
    for (const bool checked : {false, true}) {
      const std::string name = call;
      const int32_t failing = name == "get_unique_id" ? 0 : 1;
      INFO(name << (checked ? ", checked" : ""));
      const NcclRun run = run_on_nccl(
          3, checked,
          [](World& world) {
            const auto comm = world.everyone();
            std::vector<std::byte> out(300), in(900);
            std::vector<Bytes> from;
            for (size_t r = 0; r < 3; ++r) from.push_back({in.data() + 300 * r, 300});
            for (int32_t n = 0;; ++n) comm->gather({4, n}, {out.data(), 300}, from)->wait();
          },
          [&](int32_t rank, FakeNccl& nccl) {
            if (rank == failing) nccl.fail_call(name);
          });
      for (const RankEnd& end : run.ends) {
        CHECK(end.code == ExitCode::device);
        CHECK(end.line.starts_with("rank " + std::to_string(failing) + " (host "));
        CHECK(end.line.find("): NCCL, " + name + ", in ") != end.line.npos);
        CHECK(end.line.ends_with(": code 2"));
        CHECK(!end.bug);
      }
    }
  }
}

TEST_CASE("nccl: a rank that fails ends what the others have on their devices") {
  for (const int32_t ranks : {2, 3, 5}) {
    for (const FailingProgram& program : failing_programs(ranks)) {
      for (const bool checked : {false, true}) {
        if (!program.says && !checked) continue;  // the records notice it
        INFO(program.name << " on " << ranks << (checked ? " ranks, checked" : " ranks"));
        const NcclRun run = run_on_nccl(ranks, checked, program.run, {}, program.says);
        for (int32_t r = 0; r + 1 < ranks; ++r) {
          const auto at = static_cast<size_t>(r);
          CHECK(run.ends[at].code == program.code);
          CHECK(run.ends[at].line.starts_with("rank " + std::to_string(program.rank) + " (host "));
          CHECK(run.ends[at].line.find(program.line) != std::string::npos);
          CHECK(run.aborts[at] == 1);
        }
      }
    }
  }
}

TEST_CASE("nccl: a build without it says why") {
  std::string why_not;
  NcclCalls* const calls = nccl_calls(why_not);
  CHECK((calls == nullptr) == !why_not.empty());
}

}  // namespace hearth::test
