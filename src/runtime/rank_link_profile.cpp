#include "runtime/rank_link_profile.h"

#include <exception>
#include <memory>
#include <thread>
#include <utility>

#include "comm/checking_world.h"
#include "comm/pair_rates.h"
#include "comm/thread_world.h"
#include "plan/rank_links.h"

namespace hearth {

std::vector<CostLink> measure_rank_links(World& world, double seconds) {
  PairBounds bounds;
  bounds.seconds = seconds;
  std::vector<CostLink> links;
  for (const MeasuredPair& pair : measure_pairs(world, bounds)) {
    links.push_back(
        {pair_name(pair.from, pair.to), pair.bytes_per_s, pair.latency_s, pair.together});
  }
  return links;
}

std::vector<CostLink> measure_thread_links(int32_t ranks, LinkRate links, double seconds) {
  ThreadWorldOptions options;
  options.ranks = ranks;
  options.links = links;
  options.silence_s = 0;  // nobody can be stopped alone
  std::vector<std::unique_ptr<World>> worlds = make_thread_worlds(options);
  for (auto& world : worlds) world = make_checking_world(std::move(world));
  std::vector<std::thread> others;
  for (size_t rank = 1; rank < worlds.size(); ++rank) {
    others.emplace_back([&world = *worlds[rank], seconds] {
      try {
        measure_rank_links(world, seconds);
      } catch (const PeerError&) {  // rank 0 raises it, too
      }
    });
  }
  std::vector<CostLink> measured;
  std::exception_ptr failed;
  try {
    measured = measure_rank_links(*worlds[0], seconds);
  } catch (const Error& error) {
    worlds[0]->fail(error);
    failed = std::current_exception();
  }
  for (std::thread& other : others) other.join();
  if (failed) std::rethrow_exception(failed);
  return measured;
}

}  // namespace hearth
