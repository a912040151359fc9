// Every call of MPI of this process. For one thread alone (comm/mpi_thread.h).
#pragma once

#include <mpi.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "base/hash.h"
#include "comm/communicator.h"
#include "comm/control_message.h"
#include "comm/mpi_world.h"
#include "comm/peer_sockets.h"
#include "comm/piece_counts.h"
#include "comm/silence_watch.h"

namespace hearth {

/// An operation of this rank.
struct MpiOperation {
  Operation operation;
  std::vector<int32_t> members;  // of its group, as numbers of the world
  size_t pieces = 0;             // under way; of the thread that calls MPI
  bool has_ended = false;        // under the mutex of MpiThread
};

/// Messages are pieces, sent and received in the order of their operations. A piece carries a digest
/// of its operation's label and kind as its tag; the receiver compares it and the size. MPI has only
/// the next few pieces of a long message: Open MPI would first send the beginning of every piece, so
/// that none ends for a long time, and nobody could see that the message moves. Failures and goodbyes
/// travel on a communicator of their own.
class MpiCalls {
 public:
  struct Reports {
    std::function<void(MpiOperation&)> ended;
    /// Of this rank's noticing, which the others are told, or of another's.
    std::function<void(PeerFailure)> failed;
    /// What the run has failed with so far, here.
    std::function<std::optional<PeerFailure>()> failure;
  };
  /// Initialises MPI. All ranks do. `counts` must outlive this.
  MpiCalls(const MpiWorldOptions& options, Reports reports, PieceCounts& counts);

  int32_t rank() const { return rank_; }
  const std::vector<std::string>& hosts() const { return hosts_; }  // by rank

  /// Returns the number of the group once all ranks have asked for it. Raises PeerError.
  int64_t make_group(std::span<const int32_t> ranks);
  void begin(int64_t group, const std::shared_ptr<MpiOperation>& operation);
  /// Takes up what has arrived and what has ended. False: nothing.
  bool progress();
  bool has_operations() const { return !requests_.empty(); }

  /// All ranks call this once: connections of the watchdog to all others, by rank. If two ranks do not
  /// reach each other, no rank has any, and rank 0 warns.
  std::optional<std::vector<Socket>> connect_peers();
  /// Seconds in which a piece ends, also where all other ranks send over the slowest link, of one group.
  double slowest_piece_s() const;
  /// World::watch, of ranks without such connections: signs of life travel by MPI.
  void watch(double silence_s);

  /// Tells all other ranks of a failure.
  void tell(const PeerFailure& failure);
  /// After a failure: begins nothing any more, and lets go of the memory of what is under way. What
  /// MPI does not give back within some tenths of a second it may still use, so MPI is called no more.
  void settle();

  /// Tells all others that this rank leaves.
  void say_goodbye();
  bool all_have_left() const;
  /// Ends MPI, if all ranks have left and MPI may still be called.
  void finish();

 private:
  struct Lane;
  struct Piece {
    std::shared_ptr<MpiOperation> operation;
    Lane* lane = nullptr;
    int64_t group = 0;
    int32_t group_rank = 0, peer = 0;  // the other rank, in the group and in the world
    bool receives = false;
    std::byte* memory = nullptr;
    int bytes = 0;
    int tag = 0;
    double begun_at = 0;  // steady seconds
  };
  // Pieces of a group, to or from a rank of it, in their order.
  using LaneKey = std::tuple<int64_t, int32_t, bool>;  // group, rank of the world, receives
  struct Lane {
    size_t under_way = 0;
    std::deque<Piece> waiting;
  };
  struct ControlSend {
    MPI_Request request = MPI_REQUEST_NULL;
    ControlMessage message;
  };

  void check(int code, const char* call) const;
  template <class T>
  std::vector<T> gather_of(const T& own) const;
  void add_message(int64_t group, const std::shared_ptr<MpiOperation>& operation,
                   int32_t group_rank, Bytes memory, bool receives);
  /// Hands pieces that wait to MPI, as far as the lane has room.
  void begin_pieces(Lane& lane);
  void begin_piece(Piece piece);
  void copy_own(MpiOperation& operation, int32_t rank);
  void end_piece(const Piece& piece, MPI_Status& status);
  void mismatch(const MpiOperation& operation, const std::string& what);
  bool progress_control();
  void send_control(const ControlMessage& message);
  void look_for_lost();
  void look_for_silent();
  PeerFailure died(int32_t rank, const CommPoint& at) const;

  const size_t piece_bytes_;
  const Reports reports_;
  PieceCounts& counts_;
  int32_t rank_ = 0;
  std::vector<std::string> hosts_;
  MPI_Comm control_ = MPI_COMM_NULL;
  std::vector<MPI_Comm> groups_;
  std::vector<Digest> asked_;  // by rank: the group that it makes next
  std::map<LaneKey, Lane> lanes_;
  std::vector<MPI_Request> requests_;
  std::vector<Piece> pieces_;  // of the requests
  std::vector<int> ready_;
  std::vector<MPI_Status> statuses_;
  MPI_Request control_receive_ = MPI_REQUEST_NULL;
  ControlMessage control_message_;
  std::list<ControlSend> control_sends_;
  std::vector<double> left_at_;  // by rank, steady seconds; 0: not yet
  SilenceWatch silence_{0};
  CommPoint last_point_;  // of the last operation that began
  bool is_settled_ = false, is_quiet_ = false, is_goodbye_said_ = false;
  bool is_unclean_ = false;  // something is under way that MPI cannot give up: it is not ended
};

}  // namespace hearth
