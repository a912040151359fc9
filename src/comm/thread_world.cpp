#include "comm/thread_world.h"

#include <algorithm>
#include <utility>

#include "comm/thread_hub.h"

namespace hearth {
namespace {

class ThreadPending final : public Pending {
 public:
  ThreadPending(std::shared_ptr<ThreadHub> hub, std::shared_ptr<ThreadOperation> operation)
      : hub_(std::move(hub)), operation_(std::move(operation)) {}
  ~ThreadPending() override { hub_->abandon(*operation_); }
  bool reached() override { return hub_->reached(*operation_); }
  void wait() override { hub_->wait(*operation_); }

 private:
  const std::shared_ptr<ThreadHub> hub_;
  const std::shared_ptr<ThreadOperation> operation_;
};

class ThreadCommunicator final : public Communicator {
 public:
  ThreadCommunicator(std::shared_ptr<ThreadHub> hub, int64_t group, std::vector<int32_t> ranks,
                     int32_t rank, std::shared_ptr<SentBytes> sent)
      : Communicator(std::move(ranks), rank, std::move(sent)),
        hub_(std::move(hub)),
        group_(group),
        world_rank_(rank) {}

 protected:
  std::unique_ptr<Pending> start(Operation operation) override {
    return std::make_unique<ThreadPending>(
        hub_, hub_->post(world_rank_, group_, ranks(), std::move(operation)));
  }

 private:
  const std::shared_ptr<ThreadHub> hub_;
  const int64_t group_;
  const int32_t world_rank_;
};

class ThreadWorld final : public World {
 public:
  ThreadWorld(std::shared_ptr<ThreadHub> hub, int32_t rank)
      : World(rank, hub->ranks()), hub_(std::move(hub)) {}
  ~ThreadWorld() override { hub_->leave(rank()); }

  const std::string& host(int32_t) const override { return hub_->host(); }

  std::unique_ptr<Communicator> group(std::span<const int32_t> ranks) override {
    check_group(ranks);
    const int64_t number = hub_->join(rank(), ranks);
    if (std::find(ranks.begin(), ranks.end(), rank()) == ranks.end()) return nullptr;
    return std::make_unique<ThreadCommunicator>(
        hub_, number, std::vector<int32_t>(ranks.begin(), ranks.end()), rank(), sent());
  }

  PeerError fail(const Error& error) override { return hub_->fail(failure_of(error)); }
  void beat() override { hub_->beat(rank()); }
  void watch(double silence_s) override { hub_->watch(silence_s); }
  void set_away(bool away) override { hub_->set_away(rank(), away); }

 private:
  const std::shared_ptr<ThreadHub> hub_;
};

}  // namespace

std::vector<std::unique_ptr<World>> make_thread_worlds(const ThreadWorldOptions& options) {
  HEARTH_CHECK(options.ranks >= 1, "thread ranks: at least one");
  const auto hub = std::make_shared<ThreadHub>(options);
  std::vector<std::unique_ptr<World>> worlds;
  for (int32_t rank = 0; rank < options.ranks; ++rank) {
    worlds.push_back(std::make_unique<ThreadWorld>(hub, rank));
  }
  return worlds;
}

}  // namespace hearth
