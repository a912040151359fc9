// All ranks of a run. Worlds: threads of this process (comm/thread_world.h), processes that MPI
// started (comm/mpi_world.h), and one that checks another (comm/checking_world.h).
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "comm/communicator.h"

namespace hearth {

/// One rank's view of the world. Thread-safe, but `group`. Communicators and operations must not
/// outlive it. Whoever destroys it leaves: the ranks that still wait for this one raise PeerError,
/// which says that it died.
class World {
 public:
  virtual ~World() = default;
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  int32_t rank() const { return rank_; }
  int32_t size() const { return size_; }
  /// The host's name of a rank, for messages.
  virtual const std::string& host(int32_t rank) const = 0;

  /// A communicator of the ranks, in this order; null on a rank that is not one of them. Every rank
  /// of the world calls this with the same list, in the same order, before step 1. Two groups of the
  /// same ranks have nothing to do with each other: one for each stream. Raises PeerError if the
  /// ranks ask for different groups, and where the world notices.
  virtual std::unique_ptr<Communicator> group(std::span<const int32_t> ranks) = 0;
  /// The same, of messages in the host's memory that nobody checks: what a checking world sends beside
  /// the others, and what worlds on top of this one send.
  virtual std::unique_ptr<Communicator> host_group(std::span<const int32_t> ranks) {
    return group(ranks);
  }
  /// Of all ranks.
  std::unique_ptr<Communicator> everyone();

  /// Ends the run of all ranks with this rank's error: their operations raise its code and message.
  /// Returns what the run ends with, which is an earlier failure if there was one. Does not wait.
  virtual PeerError fail(const Error& error) = 0;
  /// A sign of life of this rank, for long work without operations. Raises PeerError if the run has
  /// failed.
  virtual void beat() = 0;
  /// From now on a rank has failed that gives no sign of life for so long. All ranks call it, with
  /// about the same time. Processes give signs by themselves, whatever they compute; threads by
  /// operations and beats, unless they are away. 0: no limit.
  virtual void watch(double silence_s) { static_cast<void>(silence_s); }
  /// This rank does, or no longer does, what may take any time: evaluates, waits for a disk. Until
  /// then nobody takes it for silent. Calls may be nested.
  virtual void set_away(bool away) { static_cast<void>(away); }

  /// Payload sent by this rank so far, by receiving rank: bytes of messages without what the world
  /// adds. What a rank sends to itself does not count.
  std::vector<int64_t> sent_bytes() const { return sent_->values(); }

 protected:
  World(int32_t rank, int32_t size)
      : rank_(rank), size_(size), sent_(std::make_shared<SentBytes>(size)) {}
  const std::shared_ptr<SentBytes>& sent() const { return sent_; }
  /// A bug if a number is no rank, or is there twice.
  void check_group(std::span<const int32_t> ranks) const;
  /// The failure that an error of this rank comes to; that of a PeerError is kept.
  PeerFailure failure_of(const Error& error) const;

 private:
  const int32_t rank_, size_;
  const std::shared_ptr<SentBytes> sent_;
};

/// RAII: this rank is away.
class Away {
 public:
  explicit Away(World& world) : world_(world) { world.set_away(true); }
  ~Away() { world_.set_away(false); }
  Away(const Away&) = delete;
  Away& operator=(const Away&) = delete;

 private:
  World& world_;
};

}  // namespace hearth
