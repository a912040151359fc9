// Runs a program on ranks that are threads, and collects how each of them ended.
#pragma once

#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "comm/checking_world.h"
#include "comm/thread_world.h"

namespace hearth::test {

/// How a rank ended; an empty line: it returned.
struct RankEnd {
  std::string line;
  ExitCode code = ExitCode::done;
  bool bug = false;  // std::logic_error or another exception
};

using RankProgram = std::function<void(World&)>;

/// What a rank does with its world: runs the program, and fails the world with its error, as a run
/// does. `says`: false, if a rank that throws shall leave without a word.
inline RankEnd end_of_rank(World& world, const RankProgram& program, bool says = true) {
  try {
    program(world);
    return {};
  } catch (const Error& error) {
    const PeerError kept = says ? world.fail(error) : PeerError(PeerFailure{});
    return {says ? kept.what() : error.what(), says ? kept.code() : error.code(), false};
  } catch (const std::exception& error) {
    if (says) world.fail(Error(ExitCode::internal, error.what()));
    return {error.what(), ExitCode::internal, true};
  }
}

struct RankOptions {
  ThreadWorldOptions world;
  bool checked = false;
  bool says = true;
};

/// Each rank in a thread of its own, until all have ended.
inline std::vector<RankEnd> run_ranks(const RankOptions& options, const RankProgram& program) {
  std::vector<std::unique_ptr<World>> worlds = make_thread_worlds(options.world);
  std::vector<RankEnd> ends(worlds.size());
  std::vector<std::thread> threads;
  for (size_t r = 0; r < worlds.size(); ++r) {
    threads.emplace_back([&, r] {
      std::unique_ptr<World> world = std::move(worlds[r]);
      if (options.checked) world = make_checking_world(std::move(world));
      ends[r] = end_of_rank(*world, program, options.says);
    });
  }
  for (std::thread& thread : threads) thread.join();
  return ends;
}

/// The first line of a rank that did not return; empty if all have.
inline std::string first_line(const std::vector<RankEnd>& ends) {
  for (const RankEnd& end : ends) {
    if (!end.line.empty()) return end.line;
  }
  return {};
}

}  // namespace hearth::test
