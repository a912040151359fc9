#include "comm/nccl_world.h"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>
#include <vector>

#include "base/error_format.h"

namespace hearth {
namespace {

using std::chrono::microseconds;

constexpr microseconds kLeastLook(20), kMostLook(1000);  // between two looks at the device

/// NCCL's communicator of one group at this rank, with the stream of its operations.
class NcclGroup {
 public:
  /// The ranks of `members` meet; every one of them makes its group.
  NcclGroup(World& hosts, Device& device, NcclCalls& calls, Communicator& members)
      : hosts_(hosts), device_(device), calls_(calls) {
    StreamOptions options;
    options.name = "nccl";
    options.use = StreamUse::exchange;
    stream_ = device_.create_stream(options);
    try {
      meet(members);
    } catch (...) {
      abort();
      throw;
    }
  }
  ~NcclGroup() {
    if (comm_ == nullptr) return;
    try {
      finish("comm_finalize", calls_.comm_finalize(comm_));
      calls_.comm_destroy(comm_);
    } catch (const std::exception&) {
      abort();
    }
  }
  NcclGroup(const NcclGroup&) = delete;
  NcclGroup& operator=(const NcclGroup&) = delete;

  std::unique_ptr<Event> issue(const Operation& operation, int32_t own) {
    at_ = operation.point;
    hosts_.beat();
    if (comm_ == nullptr) throw device_error("NCCL: the group was given up");
    try {
      issue_messages(operation, own);
    } catch (...) {  // what was issued before may be under way
      abort();
      try {
        stream_->synchronize();
      } catch (const Error&) {
      }
      throw;
    }
    std::unique_ptr<Event> event = device_.create_event();
    device_.record(*event, *stream_);
    return event;
  }

  bool reached(Event& event, const CommPoint& point) {
    if (comm_ != nullptr && event.reached()) return true;  // what was aborted is reached, too
    at_ = point;
    NcclCode state = kNcclOk;
    try {
      hosts_.beat();
      if (comm_ == nullptr) throw device_error("NCCL: the group was given up");
      check("comm_get_async_error", calls_.comm_get_async_error(comm_, &state));
      if (state != kNcclInProgress) check("an operation", state);
    } catch (...) {
      abort(event);
      throw;
    }
    return false;
  }

  /// Of an operation that has not ended.
  void give_up(Event& event, const CommPoint& point) {
    PeerFailure failure;
    failure.rank = hosts_.rank();
    failure.host = hosts_.host(failure.rank);
    failure.fault = PeerFault::died;
    failure.at = point;
    hosts_.fail(PeerError(std::move(failure)));
    abort(event);
  }

 private:
  void issue_messages(const Operation& operation, int32_t own) {
    copy_own(operation, own);
    check("group_start", calls_.group_start());
    for (const Outgoing& message : operation.out) {
      if (message.to == own || message.bytes.bytes == 0) continue;
      check("send",
            calls_.send(message.bytes.data, message.bytes.bytes, message.to, comm_, *stream_));
    }
    for (const Incoming& message : operation.in) {
      if (message.from == own || message.bytes.bytes == 0) continue;
      check("receive",
            calls_.receive(message.bytes.data, message.bytes.bytes, message.from, comm_, *stream_));
    }
    finish("group_end", calls_.group_end());
  }

  void meet(Communicator& members) {
    NcclId id{};
    if (members.rank() == 0) check("get_unique_id", calls_.get_unique_id(&id));
    std::vector<NcclId> ids(static_cast<size_t>(members.size()));
    std::vector<Bytes> from;
    for (NcclId& one : ids) from.push_back({reinterpret_cast<std::byte*>(one.data()), one.size()});
    members.gather({0, 0}, {reinterpret_cast<const std::byte*>(id.data()), id.size()}, from)
        ->wait();
    finish("comm_init_rank",
           calls_.comm_init_rank(&comm_, members.size(), ids[0], members.rank(), *stream_));
    std::vector<Bytes> none(ids.size());
    members.gather({0, 1}, {}, none)->wait();  // all have met, or this raises the error of one
  }

  void check(const char* call, NcclCode code) {
    if (code == kNcclOk) return;
    const std::string text = calls_.error_text(code, comm_);
    throw hosts_.fail(device_error("NCCL, {}, in {}: {}", call, at_.text(), text));
  }
  /// Of a call that may go on when it returns.
  void finish(const char* call, NcclCode code) {
    for (microseconds pause = kLeastLook; code == kNcclInProgress;
         pause = std::min(2 * pause, kMostLook)) {
      std::this_thread::sleep_for(pause);
      hosts_.beat();
      NcclCode state = kNcclOk;
      check("comm_get_async_error", calls_.comm_get_async_error(comm_, &state));
      code = state;
    }
    check(call, code);
  }
  void abort() {
    if (comm_ != nullptr) calls_.comm_abort(std::exchange(comm_, nullptr));
  }
  /// Afterwards nothing uses the memory of the operation.
  void abort(Event& event) {
    abort();
    try {
      event.synchronize();
    } catch (const Error&) {  // the device's own; the run ends with what came first
    }
  }

  // What a rank sends to itself, the k-th message to the k-th.
  void copy_own(const Operation& operation, int32_t own) {
    auto in = operation.in.begin();
    for (const Outgoing& message : operation.out) {
      if (message.to != own) continue;
      in = std::find_if(in, operation.in.end(), [&](const Incoming& m) { return m.from == own; });
      HEARTH_CHECK(in != operation.in.end() && in->bytes.bytes == message.bytes.bytes,
                   "NCCL: the bytes that a rank sends to itself differ");
      if (message.bytes.bytes > 0 && in->bytes.data != message.bytes.data) {
        device_.copy(*stream_, in->bytes.data, message.bytes.data, message.bytes.bytes);
      }
      ++in;
    }
  }

  World& hosts_;
  Device& device_;
  NcclCalls& calls_;
  std::unique_ptr<Stream> stream_;
  CommPoint at_;
  void* comm_ = nullptr;
};

class NcclPending final : public Pending {
 public:
  NcclPending(std::shared_ptr<NcclGroup> group, std::unique_ptr<Event> event, CommPoint point)
      : group_(std::move(group)), event_(std::move(event)), point_(point) {}
  ~NcclPending() override {
    if (!has_ended_) group_->give_up(*event_, point_);
  }
  bool reached() override {
    if (has_ended_) return true;
    try {
      return has_ended_ = group_->reached(*event_, point_);
    } catch (...) {
      has_ended_ = true;
      throw;
    }
  }
  void wait() override {
    for (microseconds pause = kLeastLook; !reached(); pause = std::min(2 * pause, kMostLook)) {
      std::this_thread::sleep_for(pause);
    }
  }

 private:
  const std::shared_ptr<NcclGroup> group_;
  const std::unique_ptr<Event> event_;
  const CommPoint point_;
  bool has_ended_ = false;
};

class NcclCommunicator final : public Communicator {
 public:
  NcclCommunicator(World& hosts, Device& device, NcclCalls& calls, Communicator& members,
                   std::shared_ptr<SentBytes> sent)
      : Communicator(members.ranks(), hosts.rank(), std::move(sent)),
        group_(std::make_shared<NcclGroup>(hosts, device, calls, members)) {}

 protected:
  std::unique_ptr<Pending> start(Operation operation) override {
    const CommPoint point = operation.point;
    return std::make_unique<NcclPending>(group_, group_->issue(operation, rank()), point);
  }

 private:
  const std::shared_ptr<NcclGroup> group_;
};

class NcclWorld final : public World {
 public:
  NcclWorld(World& hosts, Device& device, NcclCalls& calls)
      : World(hosts.rank(), hosts.size()), hosts_(hosts), device_(device), calls_(calls) {}

  const std::string& host(int32_t rank) const override { return hosts_.host(rank); }
  std::unique_ptr<Communicator> group(std::span<const int32_t> ranks) override {
    const std::unique_ptr<Communicator> members = hosts_.host_group(ranks);
    if (members == nullptr) return nullptr;
    return std::make_unique<NcclCommunicator>(hosts_, device_, calls_, *members, sent());
  }
  std::unique_ptr<Communicator> host_group(std::span<const int32_t> ranks) override {
    return hosts_.host_group(ranks);
  }
  PeerError fail(const Error& error) override { return hosts_.fail(error); }
  void beat() override { hosts_.beat(); }
  void watch(double silence_s) override { hosts_.watch(silence_s); }
  void set_away(bool away) override { hosts_.set_away(away); }

 private:
  World& hosts_;
  Device& device_;
  NcclCalls& calls_;
};

}  // namespace

std::unique_ptr<World> make_nccl_world(World& hosts, Device& device, NcclCalls& calls) {
  return std::make_unique<NcclWorld>(hosts, device, calls);
}

}  // namespace hearth
