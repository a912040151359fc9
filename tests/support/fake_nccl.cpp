#include "support/fake_nccl.h"

#include <algorithm>
#include <cstring>
#include <thread>

#include "base/error.h"
#include "device/host_device.h"

namespace hearth::test {
namespace {

class LateEvent final : public Event {
 public:
  explicit LateEvent(FakeNccl& nccl) : nccl_(nccl) {}
  void reset() override { group_ = nullptr; }
  bool reached() override { return group_ == nullptr || nccl_.reached(*group_); }
  void synchronize() override {
    while (!reached()) std::this_thread::yield();
  }
  void record(std::shared_ptr<FakeNccl::Group> group) { group_ = std::move(group); }

 private:
  FakeNccl& nccl_;
  std::shared_ptr<FakeNccl::Group> group_;
};

/// The host, with events that wait for what NCCL has on the stream.
class LateDevice final : public Device {
 public:
  explicit LateDevice(FakeNccl& nccl) : nccl_(nccl), host_(make_host_device(uint64_t{1} << 30)) {}
  const std::string& name() const override { return host_->name(); }
  std::vector<MemorySpace> spaces() const override { return host_->spaces(); }
  bool host_reaches() const override { return true; }
  std::unique_ptr<Arena> reserve(const std::string& arena, SpaceKind space, size_t bytes) override {
    return host_->reserve(arena, space, bytes);
  }
  std::unique_ptr<Stream> create_stream(const StreamOptions& options) override {
    return host_->create_stream(options);
  }
  std::unique_ptr<Event> create_event(bool) override { return std::make_unique<LateEvent>(nccl_); }
  void record(Event& event, Stream& stream) override {
    dynamic_cast<LateEvent&>(event).record(nccl_.last_of(stream));
  }
  void wait(Stream&, Event& event) override { event.synchronize(); }
  double seconds_between(Event&, Event&) override { return 0; }
  void copy(Stream&, void* target, const void* source, size_t bytes) override {
    std::memcpy(target, source, bytes);
  }
  void fill(Stream&, void* target, std::byte value, size_t bytes) override {
    std::memset(target, static_cast<int>(value), bytes);
  }
  void check() override {}
  void fail(Event&, std::exception_ptr) override {}

 private:
  FakeNccl& nccl_;
  const std::unique_ptr<Device> host_;
};

}  // namespace

std::unique_ptr<Device> FakeNccl::make_device() { return std::make_unique<LateDevice>(*this); }

std::vector<std::string> FakeNccl::log() const {
  const std::lock_guard lock(fabric_.mutex);
  return log_;
}

std::string FakeNccl::error_text(NcclCode code, void*) { return "code " + std::to_string(code); }

bool FakeNccl::fails(const std::string& name) {
  if (failing_ != name) return false;
  failing_.clear();
  return true;
}

NcclCode FakeNccl::get_unique_id(NcclId* id) {
  const std::lock_guard lock(fabric_.mutex);
  if (fails("get_unique_id")) return kNcclSystemError;
  const int64_t number = ++fabric_.ids;
  id->fill(0);
  std::memcpy(id->data(), &number, sizeof number);
  return kNcclOk;
}

NcclCode FakeNccl::comm_init_rank(void** comm, int ranks, const NcclId& id, int rank, Stream&) {
  const std::lock_guard lock(fabric_.mutex);
  if (fails("comm_init_rank")) return kNcclSystemError;
  auto made = std::make_unique<Comm>();
  std::memcpy(&made->id, id.data(), sizeof made->id);
  made->ranks = ranks;
  made->rank = rank;
  ++fabric_.joined[made->id];
  *comm = made.get();
  comms_[*comm] = std::move(made);
  return kNcclInProgress;
}

NcclCode FakeNccl::comm_get_async_error(void* comm, NcclCode* state) {
  const std::lock_guard lock(fabric_.mutex);
  if (fails("comm_get_async_error")) return kNcclSystemError;
  Comm& own = *comms_.at(comm);
  own.has_joined = own.has_joined || fabric_.joined[own.id] == own.ranks;
  *state = own.has_joined ? kNcclOk : kNcclInProgress;
  if (polls_ > 0 && ++polls_ > 2 && fails("an operation")) *state = kNcclSystemError;
  return kNcclOk;
}

NcclCode FakeNccl::comm_finalize(void*) { return kNcclInProgress; }

NcclCode FakeNccl::comm_destroy(void* comm) {
  const std::lock_guard lock(fabric_.mutex);
  comms_.erase(comm);
  return kNcclOk;
}

NcclCode FakeNccl::comm_abort(void* comm) {
  const std::lock_guard lock(fabric_.mutex);
  ++aborts_;
  for (auto& [stream, queue] : queues_) {
    for (const auto& group : queue) {
      if (group->comm != comm) continue;
      group->done = true;
      for (auto& [lane, message] : group->sends) std::erase(fabric_.lanes[lane], message);
    }
    std::erase_if(queue, [](const auto& group) { return group->done; });
  }
  comms_.erase(comm);
  return kNcclOk;
}

NcclCode FakeNccl::group_start() {
  const std::lock_guard lock(fabric_.mutex);
  if (fails("group_start")) return kNcclSystemError;
  open_ = std::make_shared<Group>();
  open_on_ = nullptr;
  return kNcclOk;
}

NcclCode FakeNccl::group_end() {
  const std::lock_guard lock(fabric_.mutex);
  if (fails("group_end")) return kNcclSystemError;
  log_.push_back("end");
  if (open_on_ == nullptr) return kNcclOk;
  queues_[open_on_].push_back(open_);
  last_[open_on_] = open_;
  polls_ = 1;
  return kNcclInProgress;
}

NcclCode FakeNccl::send(const void* data, size_t bytes, int peer, void* comm, Stream& stream) {
  const std::lock_guard lock(fabric_.mutex);
  if (fails("send")) return kNcclSystemError;
  log_.push_back("send " + std::to_string(bytes) + " to " + std::to_string(peer));
  const Comm& own = *comms_.at(comm);
  auto message = std::make_shared<FakeMessage>();
  message->data = static_cast<const std::byte*>(data);
  message->bytes = bytes;
  open_->comm = comm;
  open_->sends.push_back({{own.id, own.rank, peer}, std::move(message)});
  open_on_ = &stream;
  return kNcclOk;
}

NcclCode FakeNccl::receive(void* data, size_t bytes, int peer, void* comm, Stream& stream) {
  const std::lock_guard lock(fabric_.mutex);
  if (fails("receive")) return kNcclSystemError;
  log_.push_back("receive " + std::to_string(bytes) + " from " + std::to_string(peer));
  const Comm& own = *comms_.at(comm);
  open_->comm = comm;
  open_->receives.push_back(
      {{own.id, peer, own.rank}, static_cast<std::byte*>(data), bytes, false});
  open_on_ = &stream;
  return kNcclOk;
}

std::shared_ptr<FakeNccl::Group> FakeNccl::last_of(Stream& stream) {
  const std::lock_guard lock(fabric_.mutex);
  return last_[&stream];
}

void FakeNccl::run(Group& group) {
  if (!group.begun) {
    for (auto& [lane, message] : group.sends) fabric_.lanes[lane].push_back(message);
    group.begun = true;
  }
  for (size_t i = 0; i < group.receives.size(); ++i) {
    Group::Receive& receive = group.receives[i];
    auto& lane = fabric_.lanes[receive.lane];
    if (receive.done || lane.empty()) continue;
    // Of several from one rank, in order.
    const auto is_earlier = [&](const Group::Receive& r) {
      return r.lane == receive.lane && !r.done;
    };
    if (std::any_of(group.receives.begin(), group.receives.begin() + static_cast<std::ptrdiff_t>(i),
                    is_earlier)) {
      continue;
    }
    HEARTH_CHECK(lane.front()->bytes == receive.bytes, "fake NCCL: sizes differ");
    std::memcpy(receive.data, lane.front()->data, receive.bytes);
    lane.front()->taken = true;
    lane.pop_front();
    receive.done = true;
  }
  group.done =
      std::ranges::all_of(group.receives, &Group::Receive::done) &&
      std::ranges::all_of(group.sends, [](const auto& send) { return send.second->taken; });
}

void FakeNccl::run_all() {
  for (auto& [stream, queue] : queues_) {
    while (!queue.empty()) {
      run(*queue.front());
      if (!queue.front()->done) break;
      queue.pop_front();
    }
  }
}

bool FakeNccl::reached(const Group& group) {
  const std::lock_guard lock(fabric_.mutex);
  for (FakeNccl* const rank : fabric_.ranks) rank->run_all();
  return group.done;
}

}  // namespace hearth::test
