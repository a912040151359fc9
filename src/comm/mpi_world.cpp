#include "comm/mpi_world.h"

#include <algorithm>
#include <utility>

#include "comm/mpi_thread.h"

namespace hearth {
namespace {

class MpiPending final : public Pending {
 public:
  MpiPending(std::shared_ptr<MpiThread> thread, std::shared_ptr<MpiOperation> operation)
      : thread_(std::move(thread)), operation_(std::move(operation)) {}
  ~MpiPending() override { thread_->abandon(*operation_); }
  bool reached() override { return thread_->reached(*operation_); }
  void wait() override { thread_->wait(*operation_); }

 private:
  const std::shared_ptr<MpiThread> thread_;
  const std::shared_ptr<MpiOperation> operation_;
};

class MpiCommunicator final : public Communicator {
 public:
  MpiCommunicator(std::shared_ptr<MpiThread> thread, int64_t group, std::vector<int32_t> ranks,
                  std::shared_ptr<SentBytes> sent)
      : Communicator(std::move(ranks), thread->rank(), std::move(sent)),
        thread_(std::move(thread)),
        group_(group) {}

 protected:
  std::unique_ptr<Pending> start(Operation operation) override {
    return std::make_unique<MpiPending>(thread_,
                                        thread_->post(group_, ranks(), std::move(operation)));
  }

 private:
  const std::shared_ptr<MpiThread> thread_;
  const int64_t group_;
};

class MpiWorld final : public World {
 public:
  explicit MpiWorld(std::shared_ptr<MpiThread> thread)
      : World(thread->rank(), thread->size()), thread_(std::move(thread)) {}

  const std::string& host(int32_t rank) const override { return thread_->host(rank); }

  std::unique_ptr<Communicator> group(std::span<const int32_t> ranks) override {
    check_group(ranks);
    const int64_t number = thread_->make_group(ranks);
    if (std::find(ranks.begin(), ranks.end(), rank()) == ranks.end()) return nullptr;
    return std::make_unique<MpiCommunicator>(
        thread_, number, std::vector<int32_t>(ranks.begin(), ranks.end()), sent());
  }

  PeerError fail(const Error& error) override { return thread_->fail(failure_of(error)); }
  void beat() override { thread_->beat(); }
  void watch(double silence_s) override { thread_->watch(silence_s); }

 private:
  const std::shared_ptr<MpiThread> thread_;
};

}  // namespace

std::string why_no_mpi() { return {}; }

std::unique_ptr<World> make_mpi_world(const MpiWorldOptions& options) {
  return std::make_unique<MpiWorld>(std::make_shared<MpiThread>(options));
}

}  // namespace hearth
