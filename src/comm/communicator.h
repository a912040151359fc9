// Moves bytes between the ranks of one group; adds nothing. Sums stand above it (comm/reduce.h).
//
// Every rank of the group issues the same operations in the same order, also where it has no byte to
// send: an operation without bytes is as much of an operation as any other. Sizes are known on both
// sides before an operation; counts travel in a gather of their own.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "comm/peer_error.h"

namespace hearth {

struct ConstBytes {
  const std::byte* data = nullptr;
  size_t bytes = 0;
};
struct Bytes {
  std::byte* data = nullptr;
  size_t bytes = 0;
};

/// A message of an operation, to or from a rank of the group.
struct Outgoing {
  int32_t to = 0;
  ConstBytes bytes;
};
struct Incoming {
  int32_t from = 0;
  Bytes bytes;
};

/// An operation at one rank. Between two ranks messages keep their order: the k-th from r to s fills
/// the k-th that s takes from r.
struct Operation {
  CommPoint point;
  std::vector<Outgoing> out;
  std::vector<Incoming> in;
  bool is_record = false;  // of a checking world: neither ordered nor compared by its label
};

/// An operation under way. Its memory must stay until `wait` has returned or raised, or `reached`
/// was true. Whoever destroys it earlier gives the run up: other ranks take this one for dead.
class Pending {
 public:
  virtual ~Pending() = default;
  Pending() = default;
  Pending(const Pending&) = delete;
  Pending& operator=(const Pending&) = delete;
  /// Whether the operation has ended at this rank. Does not block. Raises PeerError like `wait`.
  virtual bool reached() = 0;
  /// Blocks until the operation has ended at this rank. Raises PeerError (exit 6, or the code of the
  /// rank that failed) if the run has failed; then no byte moves any more.
  virtual void wait() = 0;
};

/// Payload that one rank has sent, by receiving rank of the world. Thread-safe.
class SentBytes {
 public:
  explicit SentBytes(int32_t ranks) : bytes_(static_cast<size_t>(ranks)) {}
  void add(int32_t to, size_t bytes) {
    bytes_[static_cast<size_t>(to)].fetch_add(static_cast<int64_t>(bytes),
                                              std::memory_order_relaxed);
  }
  std::vector<int64_t> values() const { return {bytes_.begin(), bytes_.end()}; }

 private:
  std::vector<std::atomic<int64_t>> bytes_;
};

/// The ranks of a group, made by a World (comm/world.h). Operations are asynchronous: a call only
/// issues, and raises PeerError at once if the run has failed. Calls come from one thread at a time,
/// and labels rise from call to call. Memory is the host's, of NCCL the device's.
class Communicator {
 public:
  virtual ~Communicator() = default;
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  int32_t rank() const { return rank_; }  // in the group
  int32_t size() const { return static_cast<int32_t>(ranks_.size()); }
  /// Ranks of the group as numbers of the world.
  const std::vector<int32_t>& ranks() const { return ranks_; }

  /// to[r] goes to rank r and from[r] comes from there, its own bytes included (all-to-all-v).
  std::unique_ptr<Pending> exchange(CommLabel label, std::span<const ConstBytes> to,
                                    std::span<const Bytes> from);
  /// Every rank's `own` to all; from[r] comes from rank r, also from itself (all-gather-v).
  std::unique_ptr<Pending> gather(CommLabel label, ConstBytes own, std::span<const Bytes> from);
  /// Any number of messages to and from each rank of the group, none included. A collective: every
  /// rank issues it, also one without any message.
  std::unique_ptr<Pending> transfer(CommLabel label, std::vector<Outgoing> to,
                                    std::vector<Incoming> from);
  /// From one rank to one other. Only these two issue it.
  std::unique_ptr<Pending> send(CommLabel label, int32_t to, ConstBytes bytes);
  std::unique_ptr<Pending> receive(CommLabel label, int32_t from, Bytes bytes);

  /// Waits for an operation, and counts the seconds.
  void wait_for(std::unique_ptr<Pending> operation);
  double waited_s() const { return waited_s_; }

  /// What the calls above come to. For worlds that wrap another.
  std::unique_ptr<Pending> run(Operation operation);

 protected:
  /// `rank`: of this process or thread in the world; a member of `ranks`.
  Communicator(std::vector<int32_t> ranks, int32_t rank, std::shared_ptr<SentBytes> sent);
  virtual std::unique_ptr<Pending> start(Operation operation) = 0;

 private:
  const std::vector<int32_t> ranks_;
  int32_t rank_ = 0;
  const std::shared_ptr<SentBytes> sent_;
  CommLabel last_{-1, -1};
  double waited_s_ = 0;
};

}  // namespace hearth
