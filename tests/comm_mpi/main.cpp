// The programs of tests/comm on ranks that are processes: `mpirun -n N test_comm_mpi ...`.
//
//   programs            all that must go well, also checked, and with messages cut into small pieces
//   fails NAME          one that fails (failing_programs); says how this rank ended, exits with its code
//   dies                the last rank is killed within an exchange
//   hangs               MPI never comes back from a call at the last rank
//   late SECONDS        rank 0 leaves so long after the others
//   moves COUNT MIB SECONDS LIMIT [FILE]  exchanges so many messages of so many MiB with each rank,
//                       watched with this limit; leaves so many seconds later. Makes the file after
//                       the first exchange
#include <mpi.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <memory>
#include <string>
#include <thread>

#include "comm/checking_world.h"
#include "comm/mpi_world.h"
#include "comm/rank_programs.h"
#include "comm/reduce_programs.h"
#include "support/all_op_sets.h"
#include "support/borrowed_world.h"
#include "support/thread_ranks.h"

namespace {

std::atomic<bool> mpi_hangs{false};

}  // namespace

/// Takes the place of MPI's, which MPI allows.
extern "C" int MPI_Testsome(int count, MPI_Request* requests, int* done, int* indices,
                            MPI_Status* statuses) {
  while (mpi_hangs) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  return PMPI_Testsome(count, requests, done, indices, statuses);
}

namespace hearth::test {
namespace {

void reductions(World& world) {
  register_all_op_sets();
  for (const OpSet* ops : all_op_sets()) {
    for (const DType dtype : {DType::f32, DType::f64}) {
      if (!ops->supports(dtype, dtype == DType::f64 ? Compute::f64 : Compute::f32)) continue;
      for (const int32_t shards : {8, 12, 15}) {
        if (shards % world.size() != 0) continue;
        const ReduceResult expected = reduced_on_one_rank(*ops, dtype, shards);
        for (const ExpertDomains& domains : ExpertDomains::of_levels({world.size()})) {
          BorrowedWorld borrowed(world);  // with counters of its own
          run_reduction(borrowed, *ops, dtype, shards, domains, expected);
        }
      }
    }
  }
}

int run_programs(World& world) {
  std::vector<NamedProgram> programs = rank_programs();
  programs.push_back({"reductions", reductions});
  for (const NamedProgram& program : programs) {
    for (const bool checked : {false, true}) {
      BorrowedWorld borrowed(world);
      std::unique_ptr<World> used;
      if (checked) used = make_checking_world(std::make_unique<BorrowedWorld>(world));
      const RankEnd end = end_of_rank(checked ? *used : world, program.run);
      if (!end.line.empty()) {
        std::printf("rank %d: %s%s: %s\n", world.rank(), program.name.c_str(),
                    checked ? ", checked" : "", end.line.c_str());
        return 1;
      }
    }
  }
  if (world.rank() == 0) std::printf("%zu programs passed\n", programs.size());
  return 0;
}

int run_failing(World& world, const std::string& name) {
  for (const FailingProgram& program : failing_programs(world.size())) {
    if (program.name != name) continue;
    const RankEnd end = end_of_rank(world, program.run, program.says);
    std::printf("rank %d ended: %s\n", world.rank(), end.line.c_str());
    std::fflush(stdout);
    const bool fails = world.rank() == program.rank;
    if (fails && !program.says) return static_cast<int>(program.code);  // as the others
    const bool named = end.line.find("rank " + std::to_string(program.rank) + " (host ") == 0;
    if (end.code != program.code || !named || end.line.find(program.line) == std::string::npos) {
      std::printf("rank %d: not as expected\n", world.rank());
      return 99;
    }
    return static_cast<int>(end.code);
  }
  return 98;
}

int run_dying(World& world) {
  const RankEnd end = end_of_rank(world, [](World& w) {
    const auto comm = w.everyone();
    std::vector<Bytes> none(static_cast<size_t>(w.size()));
    for (int32_t n = 0;; ++n) {
      if (n == 100 && w.rank() == w.size() - 1) std::raise(SIGKILL);
      comm->gather({1, n}, {}, none)->wait();
    }
  });
  return static_cast<int>(end.code);
}

// The others learn of it from the rank itself, over the connections of the watchdog.
int run_hanging(World& world) {
  const int32_t last = world.size() - 1;
  world.watch(1);
  const RankEnd end = end_of_rank(world, [last](World& w) {
    const auto comm = w.everyone();
    std::vector<Bytes> none(static_cast<size_t>(w.size()));
    for (int32_t n = 0;; ++n) {
      if (n == 100 && w.rank() == last) mpi_hangs = true;
      comm->gather({1, n}, {}, none)->wait();
    }
  });
  std::printf("rank %d ended: %s\n", world.rank(), end.line.c_str());
  std::fflush(stdout);
  const bool named = end.line.starts_with("rank " + std::to_string(last) + " (host ") &&
                     end.line.find("): MPI has not come back from a call for") != end.line.npos;
  return named ? static_cast<int>(end.code) : 99;
}

int run_moving(World& world, int32_t count, size_t bytes, double seconds, double limit_s,
               const std::string& file) {
  world.watch(limit_s);
  const RankEnd end = end_of_rank(world, [&](World& w) {
    const auto comm = w.everyone();
    const auto ranks = static_cast<size_t>(w.size());
    std::vector<std::byte> out(bytes), in(ranks * bytes);
    const std::vector<ConstBytes> to(ranks, {out.data(), bytes});
    std::vector<Bytes> from;
    for (size_t r = 0; r < ranks; ++r) from.push_back({in.data() + r * bytes, bytes});
    for (int32_t n = 0; n < count; ++n) {
      comm->exchange({1, n}, to, from)->wait();
      if (n == 0 && w.rank() == 0 && !file.empty()) std::ofstream(file) << "";
    }
    std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  });
  std::printf("rank %d ended: %s\n", world.rank(), end.line.c_str());
  std::fflush(stdout);
  return static_cast<int>(end.code);
}

int run_late(World& world, double seconds) {
  world.watch(20);
  const RankEnd end = end_of_rank(world, [seconds](World& w) {
    if (w.rank() == 0) std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  });
  std::printf("rank %d ended: %s\n", world.rank(), end.line.c_str());
  std::fflush(stdout);
  return static_cast<int>(end.code);
}

int run_as_rank(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  MpiWorldOptions options;
  if (what == "programs" && argc > 2) options.piece_bytes = static_cast<size_t>(atol(argv[2]));
  const std::unique_ptr<World> world = make_mpi_world(options);
  if (what == "programs") return run_programs(*world);
  if (what == "fails" && argc > 2) return run_failing(*world, argv[2]);
  if (what == "dies") return run_dying(*world);
  if (what == "hangs") return run_hanging(*world);
  if (what == "late" && argc > 2) return run_late(*world, atof(argv[2]));
  if (what == "moves" && argc > 5) {
    return run_moving(*world, atoi(argv[2]), static_cast<size_t>(atol(argv[3])) << 20,
                      atof(argv[4]), atof(argv[5]), argc > 6 ? argv[6] : "");
  }
  return 97;
}

}  // namespace
}  // namespace hearth::test

int main(int argc, char** argv) {
  try {
    return hearth::test::run_as_rank(argc, argv);
  } catch (const std::exception& error) {
    std::printf("%s\n", error.what());
    return 96;
  }
}
