// NCCL without a GPU, for ranks that are threads. Operations of a stream run one after the other, and
// one ends when every message has met its other side: ranks whose orders would block real ones wait
// here for ever. Work of all ranks runs while one of them asks an event, as devices need no rank.
#pragma once

#include <array>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "comm/nccl_calls.h"
#include "device/device.h"

namespace hearth::test {

inline constexpr NcclCode kNcclSystemError = 2;

struct FakeMessage {
  const std::byte* data = nullptr;
  size_t bytes = 0;
  bool taken = false;
};

class FakeNccl;

/// What all ranks share. Thread-safe.
struct FakeFabric {
  std::mutex mutex;
  std::vector<FakeNccl*> ranks;
  int64_t ids = 0;
  std::map<int64_t, int> joined;  // by id
  // By id, sender, receiver: what was sent and not yet taken.
  std::map<std::array<int64_t, 3>, std::deque<std::shared_ptr<FakeMessage>>> lanes;
};

/// Of one rank, whose device it also makes.
class FakeNccl final : public NcclCalls {
 public:
  /// Must live as long as the others.
  explicit FakeNccl(FakeFabric& fabric) : fabric_(fabric) { fabric.ranks.push_back(this); }

  /// The next call of this name returns an error. "an operation": a group fails after group_end.
  void fail_call(const std::string& name) { failing_ = name; }
  /// "send 37 to 1": calls in their order, of operations alone.
  std::vector<std::string> log() const;
  int aborts() const { return aborts_; }
  std::unique_ptr<Device> make_device();

  std::string error_text(NcclCode code, void* comm) override;
  NcclCode get_unique_id(NcclId* id) override;
  NcclCode comm_init_rank(void** comm, int ranks, const NcclId& id, int rank,
                          Stream& stream) override;
  NcclCode comm_get_async_error(void* comm, NcclCode* state) override;
  NcclCode comm_finalize(void* comm) override;
  NcclCode comm_destroy(void* comm) override;
  NcclCode comm_abort(void* comm) override;
  NcclCode group_start() override;
  NcclCode group_end() override;
  NcclCode send(const void* data, size_t bytes, int peer, void* comm, Stream& stream) override;
  NcclCode receive(void* data, size_t bytes, int peer, void* comm, Stream& stream) override;

  /// What group_end issued.
  struct Group {
    struct Receive {
      std::array<int64_t, 3> lane;
      std::byte* data = nullptr;
      size_t bytes = 0;
      bool done = false;
    };
    void* comm = nullptr;
    std::vector<std::pair<std::array<int64_t, 3>, std::shared_ptr<FakeMessage>>> sends;
    std::vector<Receive> receives;
    bool begun = false, done = false;
  };
  /// The last group of a stream so far; null: none.
  std::shared_ptr<Group> last_of(Stream& stream);
  /// Whether it has ended. Runs what can run.
  bool reached(const Group& group);

 private:
  struct Comm {
    int64_t id = 0;
    int ranks = 0, rank = 0;
    bool has_joined = false;
  };
  bool fails(const std::string& name);
  void run(Group& group);
  void run_all();

  FakeFabric& fabric_;
  // Under the fabric's mutex.
  std::string failing_;
  std::vector<std::string> log_;
  int aborts_ = 0;
  int polls_ = 0;  // of comm_get_async_error since the last group_end, from 1 on; 0: there was none
  std::map<void*, std::unique_ptr<Comm>> comms_;
  std::map<Stream*, std::deque<std::shared_ptr<Group>>> queues_;
  std::map<Stream*, std::shared_ptr<Group>> last_;
  std::shared_ptr<Group> open_;
  Stream* open_on_ = nullptr;
};

}  // namespace hearth::test
