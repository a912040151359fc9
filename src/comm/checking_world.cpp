#include "comm/checking_world.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

namespace hearth {
namespace {

// What a rank says to another of an operation that it issues.
struct CommRecord {
  int64_t step = 0;
  int32_t number = 0;
  CommKind kind = CommKind::none;
  int64_t messages_to = 0, messages_from = 0;  // the other rank
  int64_t bytes_to = 0, bytes_from = 0;
  uint64_t sizes_to = 0, sizes_from = 0;  // digests of the sizes, in order

  std::string point() const { return CommPoint{kind, {step, number}}.text(); }
};

void add_size(int64_t& messages, int64_t& bytes, uint64_t& sizes, size_t size) {
  ++messages;
  bytes += static_cast<int64_t>(size);
  sizes = (sizes ^ size) * 0x100000001b3u + 1;  // FNV's prime
}

// A send and its receive are one operation.
CommKind kind_of_pair(CommKind kind) { return kind == CommKind::receive ? CommKind::send : kind; }

// Empty if both are one operation; else what differs. `names`: of this rank and the other.
std::string record_difference(const CommRecord& own, const CommRecord& other,
                              const std::pair<std::string, std::string>& names) {
  const std::string& own_name = names.first;
  const std::string& other_name = names.second;
  const auto points = [&](std::string_view field) {
    return fmt::format("is in {}, and {} in {}: the {} differs", own.point(), other_name,
                       other.point(), field);
  };
  if (own.step != other.step) return points("step");
  if (own.number != other.number) return points("number");
  if (kind_of_pair(own.kind) != kind_of_pair(other.kind) ||
      (own.kind == CommKind::send) != (other.kind == CommKind::receive)) {
    return points("kind");
  }
  const auto sizes = [&](std::string_view field, int64_t sends, int64_t expects, bool own_sends) {
    return fmt::format("is in {}: the {} differ: {} sends {}, {} expects {}", own.point(), field,
                       own_sends ? own_name : other_name, sends, own_sends ? other_name : own_name,
                       expects);
  };
  if (own.messages_to != other.messages_from) {
    return sizes("messages", own.messages_to, other.messages_from, true);
  }
  if (own.messages_from != other.messages_to) {
    return sizes("messages", other.messages_to, own.messages_from, false);
  }
  if (own.bytes_to != other.bytes_from) {
    return sizes("bytes", own.bytes_to, other.bytes_from, true);
  }
  if (own.bytes_from != other.bytes_to) {
    return sizes("bytes", other.bytes_to, own.bytes_from, false);
  }
  if (own.sizes_to != other.sizes_from || own.sizes_from != other.sizes_to) {
    return fmt::format("is in {}: the sizes of its messages differ from those of {}", own.point(),
                       other_name);
  }
  return {};
}

// An operation with its records. Both are under way at once.
class CheckedPending final : public Pending {
 public:
  CheckedPending(World& world, Communicator& records, Communicator& payload, Operation operation)
      : world_(world), ranks_(records.ranks()), rank_(records.rank()), point_(operation.point) {
    const auto count = static_cast<size_t>(records.size());
    own_.resize(count, {point_.label.step, point_.label.number, point_.kind});
    others_.resize(count);
    std::set<int32_t> peers;
    for (const Outgoing& message : operation.out) {
      CommRecord& record = own_[static_cast<size_t>(message.to)];
      add_size(record.messages_to, record.bytes_to, record.sizes_to, message.bytes.bytes);
      peers.insert(message.to);
    }
    for (const Incoming& message : operation.in) {
      CommRecord& record = own_[static_cast<size_t>(message.from)];
      add_size(record.messages_from, record.bytes_from, record.sizes_from, message.bytes.bytes);
      peers.insert(message.from);
    }
    if (point_.kind != CommKind::send && point_.kind != CommKind::receive) {
      for (int32_t r = 0; r < records.size(); ++r) peers.insert(r);
    }
    peers.erase(rank_);
    peers_.assign(peers.begin(), peers.end());
    Operation exchange{point_, {}, {}, true};
    for (const int32_t peer : peers_) {
      const auto at = static_cast<size_t>(peer);
      exchange.out.push_back(
          {peer, {reinterpret_cast<const std::byte*>(&own_[at]), sizeof(CommRecord)}});
      exchange.in.push_back(
          {peer, {reinterpret_cast<std::byte*>(&others_[at]), sizeof(CommRecord)}});
    }
    records_ = records.run(std::move(exchange));
    payload_ = payload.run(std::move(operation));
  }

  bool reached() override {
    if (!compared_) {
      if (!records_->reached()) return false;
      compare();
    }
    return payload_->reached();
  }
  void wait() override {
    if (!compared_) {
      records_->wait();
      compare();
    }
    payload_->wait();
  }

 private:
  std::string name(int32_t rank) const {
    const int32_t number = ranks_[static_cast<size_t>(rank)];
    return named_rank(number, world_.host(number));
  }

  void compare() {
    for (const int32_t peer : peers_) {
      const auto at = static_cast<size_t>(peer);
      std::string difference = record_difference(own_[at], others_[at], {name(rank_), name(peer)});
      if (difference.empty()) continue;
      PeerFailure failure;
      failure.rank = world_.rank();
      failure.host = world_.host(failure.rank);
      failure.fault = PeerFault::mismatch;
      failure.code = ExitCode::internal;
      failure.at = point_;
      failure.detail = std::move(difference);
      throw world_.fail(PeerError(std::move(failure)));
    }
    compared_ = true;
  }

  World& world_;
  const std::vector<int32_t>& ranks_;
  const int32_t rank_;
  const CommPoint point_;
  std::vector<CommRecord> own_, others_;  // by rank of the group
  std::vector<int32_t> peers_;
  std::unique_ptr<Pending> records_, payload_;
  bool compared_ = false;
};

class CheckedCommunicator final : public Communicator {
 public:
  CheckedCommunicator(World& world, std::unique_ptr<Communicator> records,
                      std::unique_ptr<Communicator> payload, std::shared_ptr<SentBytes> sent)
      : Communicator(payload->ranks(), world.rank(), std::move(sent)),
        world_(world),
        records_(std::move(records)),
        payload_(std::move(payload)) {}

 protected:
  std::unique_ptr<Pending> start(Operation operation) override {
    return std::make_unique<CheckedPending>(world_, *records_, *payload_, std::move(operation));
  }

 private:
  World& world_;
  const std::unique_ptr<Communicator> records_, payload_;
};

class CheckingWorld final : public World {
 public:
  explicit CheckingWorld(std::unique_ptr<World> world)
      : World(world->rank(), world->size()), world_(std::move(world)) {}

  const std::string& host(int32_t rank) const override { return world_->host(rank); }
  std::unique_ptr<Communicator> group(std::span<const int32_t> ranks) override {
    auto records = world_->host_group(ranks);
    auto payload = world_->group(ranks);
    if (payload == nullptr) return nullptr;
    return std::make_unique<CheckedCommunicator>(*world_, std::move(records), std::move(payload),
                                                 sent());
  }
  std::unique_ptr<Communicator> host_group(std::span<const int32_t> ranks) override {
    return world_->host_group(ranks);  // of what checks its messages itself
  }
  PeerError fail(const Error& error) override { return world_->fail(error); }
  void beat() override { world_->beat(); }
  void watch(double silence_s) override { world_->watch(silence_s); }
  void set_away(bool away) override { world_->set_away(away); }

 private:
  const std::unique_ptr<World> world_;
};

}  // namespace

std::unique_ptr<World> make_checking_world(std::unique_ptr<World> world) {
  return std::make_unique<CheckingWorld>(std::move(world));
}

}  // namespace hearth
