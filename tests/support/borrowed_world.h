// A world for one test of several that share one, as a process has one world of MPI.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "comm/world.h"

namespace hearth::test {

/// Passes all calls to a world that outlives it, and does not leave when it is destroyed.
class BorrowedWorld : public World {
 public:
  explicit BorrowedWorld(World& world) : World(world.rank(), world.size()), world_(world) {}
  const std::string& host(int32_t rank) const override { return world_.host(rank); }
  std::unique_ptr<Communicator> group(std::span<const int32_t> ranks) override {
    return world_.group(ranks);
  }
  PeerError fail(const Error& error) override { return world_.fail(error); }
  void beat() override { world_.beat(); }

 private:
  World& world_;
};

}  // namespace hearth::test
