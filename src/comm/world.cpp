#include "comm/world.h"

#include <numeric>

namespace hearth {

std::unique_ptr<Communicator> World::everyone() {
  std::vector<int32_t> ranks(static_cast<size_t>(size_));
  std::iota(ranks.begin(), ranks.end(), 0);
  return group(ranks);
}

void World::check_group(std::span<const int32_t> ranks) const {
  HEARTH_CHECK(!ranks.empty(), "group: without ranks");
  std::vector<bool> seen(static_cast<size_t>(size_));
  for (const int32_t rank : ranks) {
    HEARTH_CHECK(rank >= 0 && rank < size_ && !seen[static_cast<size_t>(rank)],
                 "group: ranks of the world, each once");
    seen[static_cast<size_t>(rank)] = true;
  }
}

PeerFailure World::failure_of(const Error& error) const {
  if (const auto* peer = dynamic_cast<const PeerError*>(&error)) return peer->failure();
  PeerFailure failure;
  failure.rank = rank_;
  failure.host = host(rank_);
  failure.code = error.code();
  failure.detail = error.what();
  return failure;
}

}  // namespace hearth
