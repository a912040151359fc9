// What the worlds of thread ranks share: messages meet here, and so do failures.
#pragma once

#include <array>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "comm/communicator.h"
#include "comm/thread_world.h"

namespace hearth {

/// An operation of one rank. The hub's mutex protects it.
struct ThreadOperation {
  int32_t rank = 0;  // of the world, as `missing`
  CommPoint point;
  bool is_record = false;
  std::vector<int32_t> missing;  // for each message without its other side: the rank of that side
  int32_t moving = 0;            // messages that a thread copies now
  double ready_at = 0;           // when the links have passed all that was copied
  bool ended() const { return missing.empty() && moving == 0; }
};

/// Thread-safe. Operations of a group match by ordered pair of ranks, in the order of their issue.
class ThreadHub {
 public:
  explicit ThreadHub(const ThreadWorldOptions& options);

  int32_t ranks() const { return static_cast<int32_t>(states_.size()); }
  const std::string& host() const { return host_; }

  /// The number of the group that this rank makes next. Raises PeerError if another rank made
  /// another one in its place.
  int64_t join(int32_t rank, std::span<const int32_t> members);
  /// Issues an operation of a group, with members as numbers of the world.
  std::shared_ptr<ThreadOperation> post(int32_t rank, int64_t group,
                                        std::span<const int32_t> members, Operation operation);
  bool reached(ThreadOperation& operation);
  void wait(ThreadOperation& operation);
  /// Takes back what has no other side yet; its rank counts as gone if there is such a thing.
  void abandon(ThreadOperation& operation);

  PeerError fail(PeerFailure failure);
  void beat(int32_t rank);
  void watch(double silence_s);
  void set_away(int32_t rank, bool away);
  void leave(int32_t rank);

 private:
  // One side of a message.
  struct Side {
    std::shared_ptr<ThreadOperation> operation;
    Bytes memory;  // of a sender only read
  };
  // Messages of an ordered pair in a group that lack their other side. One of the two is empty.
  struct Lane {
    std::deque<Side> senders, receivers;
  };
  struct Meeting {
    Side sender, receiver;
  };
  using LaneKey = std::array<int64_t, 3>;  // group, from, to
  struct RankState {
    std::condition_variable changed;
    double last_sign = 0;  // steady seconds
    int32_t waiting = 0;   // threads
    int32_t away = 0;      // how often it said so
    bool left = false;
    int64_t groups = 0;
    std::unique_ptr<Link> out, in;
  };

  RankState& state(int32_t rank) { return states_[static_cast<size_t>(rank)]; }
  void sign(int32_t rank);
  void raise_if_failed() const;
  PeerFailure failure_at(int32_t rank, PeerFault fault, const CommPoint& point) const;
  void set_failure(PeerFailure failure);
  void meet(LaneKey key, Side side, bool sends, std::vector<Meeting>& met);
  void check_meeting(const Meeting& meeting);
  double book(int32_t from, int32_t to, size_t bytes);
  void look_for_failure(const ThreadOperation& operation, double now);
  void withdraw(ThreadOperation& operation);

  const std::string host_;
  const double latency_s_;
  LinkClock& clock_;
  std::mutex mutex_;
  double silence_s_ = 0;
  double last_look_ = 0;  // at the other ranks, of any rank
  std::deque<RankState> states_;
  std::map<LaneKey, Lane> lanes_;
  std::vector<std::vector<int32_t>> groups_;
  std::optional<PeerFailure> failure_;
};

}  // namespace hearth
