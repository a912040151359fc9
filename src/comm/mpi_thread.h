// The thread that makes every call of MPI of this process, and what others ask of it.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "comm/mpi_calls.h"
#include "comm/piece_counts.h"
#include "comm/watchdog.h"

namespace hearth {

/// Calls are thread-safe. They put work into a queue, which the thread takes up at once. Failures
/// end all that is under way. If MPI itself hangs, a failure ends what waits for it some seconds later;
/// MPI may then still write to memory of operations, so the process must end soon.
class MpiThread {
 public:
  explicit MpiThread(const MpiWorldOptions& options);
  /// Leaves: says so to the others, and ends MPI when all have left. If the run has failed it waits
  /// for two seconds at most.
  ~MpiThread();
  MpiThread(const MpiThread&) = delete;
  MpiThread& operator=(const MpiThread&) = delete;

  int32_t rank() const { return rank_; }
  int32_t size() const { return static_cast<int32_t>(hosts_.size()); }
  const std::string& host(int32_t rank) const { return hosts_[static_cast<size_t>(rank)]; }

  /// The number of a group that all ranks make together. Blocks. Raises PeerError.
  int64_t make_group(std::span<const int32_t> ranks);
  std::shared_ptr<MpiOperation> post(int64_t group, std::vector<int32_t> members,
                                     Operation operation);
  bool reached(const MpiOperation& operation);
  void wait(const MpiOperation& operation);
  /// Fails the run unless the operation has ended.
  void abandon(const MpiOperation& operation);
  PeerError fail(PeerFailure failure);
  void beat();
  void watch(double silence_s);

 private:
  // Outlives the object if the thread has to be left alone at the end.
  struct Shared {
    std::mutex mutex;
    std::condition_variable work, changed;
    std::deque<std::function<void(MpiCalls&)>> commands;
    std::optional<PeerFailure> failure;
    CommPoint last_point;     // of the last operation that was posted
    double failed_at = 0;     // steady seconds
    bool mpi_hangs = false;   // that is the failure
    bool is_settled = false;  // after a failure: MPI uses no memory of operations any more
    bool is_leaving = false, has_begun = false, has_ended = false;
    int32_t rank = 0;
    std::vector<std::string> hosts;
    std::atomic<double> in_call_since = 0;  // steady seconds: when the thread was last in our code
    PieceCounts pieces;
    std::unique_ptr<Watchdog> watchdog;  // once begun, if the ranks reach each other by TCP
    /// Under the mutex.
    bool has_given_up() const;
  };
  static void run(const std::shared_ptr<Shared>& shared, const MpiWorldOptions& options);
  static void serve(Shared& shared, MpiCalls& calls);
  static std::unique_ptr<Watchdog> make_watchdog(Shared& shared, MpiCalls& calls);
  /// False: the run had failed before.
  static bool set_failure(Shared& shared, PeerFailure failure);
  void command(std::function<void(MpiCalls&)> work);

  const std::shared_ptr<Shared> shared_;
  int32_t rank_ = 0;
  std::vector<std::string> hosts_;
};

}  // namespace hearth
