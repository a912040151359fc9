#include "comm/mpi_calls.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <type_traits>
#include <utility>

#include "base/log.h"
#include "base/stopwatch.h"

namespace hearth {
namespace {

// Messages of a rank that has left may still be on their way for so long.
constexpr double kLateSeconds = 1;
constexpr double kSettleSeconds = 0.3, kTellSeconds = 0.2;
constexpr double kMeetSeconds = 15;
// Of a message, that MPI has at a time: 4 MiB, more than fast links have on their way.
constexpr size_t kPiecesUnderWay = 16;
// Slower links than this are taken for ones that are cut (slowest_piece_s).
constexpr double kSlowestLink = 1e6;  // bytes/s
constexpr int kTags = 0x7fff;         // the least upper bound that MPI promises

// A send and its receive have one tag. Differences of step and number show, but for chance.
int tag_of(const Operation& operation) {
  if (operation.is_record) return 0;
  const CommKind kind = operation.point.kind;
  const uint64_t pair = static_cast<uint64_t>(kind == CommKind::receive ? CommKind::send : kind);
  const auto step = static_cast<uint64_t>(operation.point.label.step);
  const auto number = static_cast<uint64_t>(operation.point.label.number);
  return static_cast<int>(((step * 1021 + number) * 8 + pair) & kTags);
}

// Polls until `done` or until the time is over.
template <class Done>
void poll_for(double seconds, const Done& done) {
  const Stopwatch time;
  while (!done() && time.seconds() < seconds) {
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
}

}  // namespace

MpiCalls::MpiCalls(const MpiWorldOptions& options, Reports reports, PieceCounts& counts)
    : piece_bytes_(options.piece_bytes), reports_(std::move(reports)), counts_(counts) {
  HEARTH_CHECK(piece_bytes_ > 0 && piece_bytes_ <= INT_MAX, "mpi: pieces are counted by an int");
  // Of Open MPI, before it starts; a user's value counts. Over TCP it would let the receiver's side ask
  // for large messages, and if it is polled, both directions of a pair take turns
  // (docs/benchmarks/ranks.md).
  ::setenv("OMPI_MCA_btl_tcp_flags", "1", 0);  // sends alone
  int level = 0, size = 0;
  check(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &level), "MPI_Init_thread");
  check(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
  check(MPI_Comm_rank(MPI_COMM_WORLD, &rank_), "MPI_Comm_rank");
  check(MPI_Comm_size(MPI_COMM_WORLD, &size), "MPI_Comm_size");
  check(MPI_Comm_dup(MPI_COMM_WORLD, &control_), "MPI_Comm_dup");
  check(MPI_Comm_set_errhandler(control_, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");

  std::array<char, MPI_MAX_PROCESSOR_NAME> own{};
  int length = 0;
  check(MPI_Get_processor_name(own.data(), &length), "MPI_Get_processor_name");
  hosts_.resize(static_cast<size_t>(size));
  const auto names = gather_of(own);
  for (size_t r = 0; r < names.size(); ++r) {
    hosts_[r].assign(names[r].data(), strnlen(names[r].data(), names[r].size()));
  }
  left_at_.resize(hosts_.size());
  silence_ = SilenceWatch(size);
}

// Blocks. What every rank brings, by rank.
template <class T>
std::vector<T> MpiCalls::gather_of(const T& own) const {
  static_assert(std::is_trivially_copyable_v<T>);
  std::vector<T> all(hosts_.size());
  check(MPI_Allgather(&own, sizeof own, MPI_BYTE, all.data(), sizeof own, MPI_BYTE, control_),
        "MPI_Allgather");
  return all;
}

std::optional<std::vector<Socket>> MpiCalls::connect_peers() {
  PeerListener listener(rank_);
  std::vector<Socket> peers = listener.meet(gather_of(listener.address()), kMeetSeconds);
  int32_t missing = -1;
  for (size_t r = 0; r < peers.size(); ++r) {
    const auto peer = static_cast<int32_t>(r);
    if (peer != rank_ && !peers[r].is_open() && missing < 0) missing = peer;
  }
  const std::vector<int32_t> all = gather_of(missing);
  for (size_t r = 0; r < all.size(); ++r) {
    if (all[r] < 0) continue;
    const auto peer = static_cast<size_t>(all[r]);
    if (rank_ == 0) {
      log_warning(fmt::format(
          "{} and {} do not reach each other by TCP; signs of life travel by MPI, so a rank that "
          "hangs in MPI may hang all",
          named_rank(static_cast<int32_t>(r), hosts_[r]), named_rank(all[r], hosts_[peer])));
    }
    return std::nullopt;
  }
  return peers;
}

void MpiCalls::check(int code, const char* call) const {
  if (code == MPI_SUCCESS) return;
  std::array<char, MPI_MAX_ERROR_STRING> text{};
  int length = 0;
  MPI_Error_string(code, text.data(), &length);
  throw device_error(std::string(call) + ": " + text.data());
}

PeerFailure MpiCalls::died(int32_t rank, const CommPoint& at) const {
  PeerFailure failure;
  failure.rank = rank;
  failure.host = hosts_[static_cast<size_t>(rank)];
  failure.fault = PeerFault::died;
  failure.at = at;
  return failure;
}

// All ranks first compare what they ask for, without blocking; then nobody keeps the others waiting.
int64_t MpiCalls::make_group(std::span<const int32_t> ranks) {
  Hasher hasher;
  hasher.update_u64(groups_.size());
  for (const int32_t rank : ranks) hasher.update_u64(static_cast<uint64_t>(rank));
  const Digest own = hasher.digest();
  asked_.assign(hosts_.size(), {});
  asked_[static_cast<size_t>(rank_)] = own;
  MPI_Request request = MPI_REQUEST_NULL;
  check(MPI_Iallgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, asked_.data(), sizeof own, MPI_BYTE,
                       control_, &request),
        "MPI_Iallgather");
  for (int done = 0; done == 0;) {
    check(MPI_Test(&request, &done, MPI_STATUS_IGNORE), "MPI_Test");
    progress();
    if (done == 0) {
      for (size_t r = 0; r < left_at_.size(); ++r) {
        if (left_at_[r] > 0 && steady_seconds() - left_at_[r] > kLateSeconds) {
          reports_.failed(died(static_cast<int32_t>(r), {}));
        }
      }
      std::this_thread::sleep_for(std::chrono::microseconds(20));
    }
    if (const auto failure = reports_.failure()) {
      is_unclean_ = done == 0;
      throw PeerError(*failure);
    }
  }
  for (size_t r = 0; r < asked_.size(); ++r) {
    if (asked_[r] == own) continue;
    PeerFailure failure = died(rank_, {});
    failure.fault = PeerFault::mismatch;
    failure.code = ExitCode::internal;
    failure.detail =
        fmt::format("makes group {} of ranks {}, where {} makes another one", groups_.size(),
                    fmt::join(ranks, ", "), named_rank(static_cast<int32_t>(r), hosts_[r]));
    reports_.failed(failure);
    throw PeerError(std::move(failure));
  }
  const auto at = std::find(ranks.begin(), ranks.end(), rank_);
  MPI_Comm comm = MPI_COMM_NULL;
  check(MPI_Comm_split(control_, at == ranks.end() ? MPI_UNDEFINED : 0,
                       static_cast<int>(at - ranks.begin()), &comm),
        "MPI_Comm_split");
  if (comm != MPI_COMM_NULL) {
    check(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
  }
  groups_.push_back(comm);
  return static_cast<int64_t>(groups_.size()) - 1;
}

double MpiCalls::slowest_piece_s() const {
  const auto bytes = static_cast<double>(kPiecesUnderWay * piece_bytes_);
  return static_cast<double>(hosts_.size() - 1) * bytes / kSlowestLink;
}

void MpiCalls::add_message(int64_t group, const std::shared_ptr<MpiOperation>& operation,
                           int32_t group_rank, Bytes memory, bool receives) {
  const int32_t peer = operation->members[static_cast<size_t>(group_rank)];
  if (peer == rank_) return;
  Lane& lane = lanes_[{group, peer, receives}];
  Piece piece;
  piece.operation = operation;
  piece.lane = &lane;
  piece.group = group;
  piece.group_rank = group_rank;
  piece.peer = peer;
  piece.receives = receives;
  piece.tag = tag_of(operation->operation);
  size_t begin = 0;
  do {  // a message without bytes is a piece, too
    const size_t n = std::min(piece_bytes_, memory.bytes - begin);
    piece.memory = memory.data + begin;
    piece.bytes = static_cast<int>(n);
    ++operation->pieces;
    lane.waiting.push_back(piece);
    begin += n;
  } while (begin < memory.bytes);
  begin_pieces(lane);
}

void MpiCalls::begin_pieces(Lane& lane) {
  while (lane.under_way < kPiecesUnderWay && !lane.waiting.empty()) {
    ++lane.under_way;
    begin_piece(std::move(lane.waiting.front()));
    lane.waiting.pop_front();
  }
}

void MpiCalls::begin_piece(Piece piece) {
  const MPI_Comm comm = groups_[static_cast<size_t>(piece.group)];
  piece.begun_at = steady_seconds();
  MPI_Request request = MPI_REQUEST_NULL;
  if (piece.receives) {
    check(MPI_Irecv(piece.memory, piece.bytes, MPI_BYTE, piece.group_rank, MPI_ANY_TAG, comm,
                    &request),
          "MPI_Irecv");
    counts_.expects(piece.group, piece.peer, piece.operation->operation.point);
  } else {
    check(
        MPI_Isend(piece.memory, piece.bytes, MPI_BYTE, piece.group_rank, piece.tag, comm, &request),
        "MPI_Isend");
    counts_.sends(piece.group, piece.peer);
  }
  requests_.push_back(request);
  pieces_.push_back(std::move(piece));
}

// What a rank sends to itself, the k-th message to the k-th.
void MpiCalls::copy_own(MpiOperation& operation, int32_t rank) {
  auto from = operation.operation.in.begin();
  const auto end = operation.operation.in.end();
  for (const Outgoing& message : operation.operation.out) {
    if (operation.members[static_cast<size_t>(message.to)] != rank) continue;
    from = std::find_if(from, end, [&](const Incoming& m) { return m.from == message.to; });
    if (from == end || from->bytes.bytes != message.bytes.bytes) {
      return mismatch(operation, "the bytes that it sends to itself differ");
    }
    if (message.bytes.bytes > 0 && from->bytes.data != message.bytes.data) {
      std::memcpy(from->bytes.data, message.bytes.data, message.bytes.bytes);
    }
    ++from;
  }
}

void MpiCalls::begin(int64_t group, const std::shared_ptr<MpiOperation>& operation) {
  if (is_settled_) return;
  last_point_ = operation->operation.point;
  for (const Incoming& message : operation->operation.in) {
    add_message(group, operation, message.from, message.bytes, true);
  }
  for (const Outgoing& message : operation->operation.out) {
    std::byte* const memory = const_cast<std::byte*>(message.bytes.data);
    add_message(group, operation, message.to, {memory, message.bytes.bytes}, false);
  }
  copy_own(*operation, rank_);
  if (operation->pieces == 0) reports_.ended(*operation);
}

void MpiCalls::mismatch(const MpiOperation& operation, const std::string& what) {
  PeerFailure failure = died(rank_, operation.operation.point);
  failure.fault = PeerFault::mismatch;
  failure.code = ExitCode::internal;
  failure.detail = "is in " + failure.at.text() + ": " + what;
  reports_.failed(std::move(failure));
}

void MpiCalls::end_piece(const Piece& piece, MPI_Status& status) {
  if (piece.receives) {
    const std::string peer = named_rank(piece.peer, hosts_[static_cast<size_t>(piece.peer)]);
    int bytes = 0;
    MPI_Get_count(&status, MPI_BYTE, &bytes);
    if (status.MPI_TAG != piece.tag) {
      return mismatch(*piece.operation, peer + " is in another operation");
    }
    if (bytes != piece.bytes) {
      return mismatch(*piece.operation, fmt::format("the bytes differ: {} sends {}, {} expected",
                                                    peer, bytes, piece.bytes));
    }
  }
  if (piece.receives) {
    counts_.arrived(piece.group, piece.peer);
  } else {
    counts_.sent();
  }
  if (--piece.operation->pieces == 0) reports_.ended(*piece.operation);
}

bool MpiCalls::progress() {
  if (is_quiet_) return false;
  bool moved = progress_control();
  if (silence_.is_on() && !is_settled_) look_for_silent();
  if (requests_.empty() || is_settled_) return moved;
  look_for_lost();
  ready_.resize(requests_.size());
  statuses_.resize(requests_.size());
  int count = 0;
  const int code = MPI_Testsome(static_cast<int>(requests_.size()), requests_.data(), &count,
                                ready_.data(), statuses_.data());
  if (code != MPI_SUCCESS && code != MPI_ERR_IN_STATUS) check(code, "MPI_Testsome");
  if (count == MPI_UNDEFINED || count == 0) return moved;
  for (int i = 0; i < count; ++i) {
    const auto at = static_cast<size_t>(ready_[static_cast<size_t>(i)]);
    MPI_Status& status = statuses_[static_cast<size_t>(i)];
    if (code == MPI_ERR_IN_STATUS && status.MPI_ERROR != MPI_SUCCESS) {
      int error = MPI_SUCCESS;
      MPI_Error_class(status.MPI_ERROR, &error);
      if (error != MPI_ERR_TRUNCATE) check(status.MPI_ERROR, "MPI_Testsome");
      mismatch(
          *pieces_[at].operation,
          fmt::format("the bytes differ: {} sends more than {}",
                      named_rank(pieces_[at].peer, hosts_[static_cast<size_t>(pieces_[at].peer)]),
                      pieces_[at].bytes));
    } else {
      end_piece(pieces_[at], status);
    }
  }
  std::vector<Lane*> with_room;
  size_t kept = 0;
  for (size_t i = 0; i < requests_.size(); ++i) {
    if (requests_[i] == MPI_REQUEST_NULL) {
      --pieces_[i].lane->under_way;
      with_room.push_back(pieces_[i].lane);
      continue;
    }
    if (kept != i) requests_[kept] = requests_[i], pieces_[kept] = std::move(pieces_[i]);
    ++kept;
  }
  requests_.resize(kept);
  pieces_.resize(kept);
  for (Lane* const lane : with_room) begin_pieces(*lane);
  return true;
}

// Ranks that have left and that something waits for.
void MpiCalls::look_for_lost() {
  const double now = steady_seconds();
  for (const Piece& piece : pieces_) {
    const double left_at = left_at_[static_cast<size_t>(piece.peer)];
    if (left_at > 0 && now - std::max(left_at, piece.begun_at) > kLateSeconds) {
      return reports_.failed(died(piece.peer, piece.operation->operation.point));
    }
  }
}

void MpiCalls::watch(double silence_s) { silence_.set_limit(silence_s, steady_seconds()); }

// A beat that the network has not taken is enough.
void MpiCalls::look_for_silent() {
  const double now = steady_seconds();
  if (control_sends_.empty() && silence_.must_beat(now)) {
    ControlMessage beat;
    beat.rank = rank_;
    send_control(beat);
  }
  silence_.heard(rank_, now);
  const auto silent = silence_.look(now);
  if (!silent) return;
  PeerFailure failure = died(silent->rank, last_point_);
  failure.fault = PeerFault::silent;
  failure.silent_s = silent->seconds;
  reports_.failed(std::move(failure));
}

bool MpiCalls::progress_control() {
  bool moved = false;
  for (;;) {
    if (control_receive_ == MPI_REQUEST_NULL) {
      check(MPI_Irecv(&control_message_, sizeof control_message_, MPI_BYTE, MPI_ANY_SOURCE, 1,
                      control_, &control_receive_),
            "MPI_Irecv");
    }
    int done = 0;
    check(MPI_Test(&control_receive_, &done, MPI_STATUS_IGNORE), "MPI_Test");
    if (done == 0) break;
    moved = true;
    const ControlMessage& message = control_message_;
    switch (message.kind) {
      case ControlMessage::Kind::beat: silence_.heard(message.rank, steady_seconds()); break;
      case ControlMessage::Kind::goodbye:
        left_at_[static_cast<size_t>(message.rank)] = steady_seconds();
        silence_.left(message.rank);
        break;
      case ControlMessage::Kind::failure:
        reports_.failed(failure_in(message, hosts_[static_cast<size_t>(message.rank)]));
        break;
      case ControlMessage::Kind::wait:
      case ControlMessage::Kind::stall: break;  // of watchdogs alone
    }
  }
  for (auto send = control_sends_.begin(); send != control_sends_.end();) {
    int done = 0;
    check(MPI_Test(&send->request, &done, MPI_STATUS_IGNORE), "MPI_Test");
    send = done != 0 ? control_sends_.erase(send) : std::next(send);
  }
  return moved;
}

void MpiCalls::send_control(const ControlMessage& message) {
  for (int32_t r = 0; r < static_cast<int32_t>(hosts_.size()); ++r) {
    if (r == rank_ || left_at_[static_cast<size_t>(r)] > 0) continue;
    ControlSend& send = control_sends_.emplace_back();
    send.message = message;
    check(MPI_Isend(&send.message, sizeof send.message, MPI_BYTE, r, 1, control_, &send.request),
          "MPI_Isend");
  }
}

void MpiCalls::tell(const PeerFailure& failure) {
  if (is_quiet_) return;
  send_control(message_of(failure));
  poll_for(kTellSeconds, [&] {
    progress_control();
    return control_sends_.empty();
  });
}

void MpiCalls::settle() {
  is_settled_ = true;
  if (is_quiet_) return;
  for (size_t i = 0; i < requests_.size(); ++i) {
    if (pieces_[i].receives) MPI_Cancel(&requests_[i]);
  }
  int done = 0;
  poll_for(kSettleSeconds, [&] {
    progress_control();
    MPI_Testall(static_cast<int>(requests_.size()), requests_.data(), &done, MPI_STATUSES_IGNORE);
    return done != 0;
  });
  is_quiet_ = done == 0;
  requests_.clear();
  pieces_.clear();
  lanes_.clear();
}

void MpiCalls::say_goodbye() {
  if (is_quiet_ || is_goodbye_said_) return;
  is_goodbye_said_ = true;
  ControlMessage message;
  message.kind = ControlMessage::Kind::goodbye;
  message.rank = rank_;
  // Also to ranks that have left: they wait for the goodbyes of all.
  for (int32_t r = 0; r < static_cast<int32_t>(hosts_.size()); ++r) {
    if (r == rank_) continue;
    ControlSend& send = control_sends_.emplace_back();
    send.message = message;
    check(MPI_Isend(&send.message, sizeof send.message, MPI_BYTE, r, 1, control_, &send.request),
          "MPI_Isend");
  }
}

bool MpiCalls::all_have_left() const {
  if (is_quiet_ || !is_goodbye_said_ || !control_sends_.empty()) return false;
  for (int32_t r = 0; r < static_cast<int32_t>(hosts_.size()); ++r) {
    if (r != rank_ && left_at_[static_cast<size_t>(r)] == 0) return false;
  }
  return true;
}

void MpiCalls::finish() {
  if (!all_have_left() || is_unclean_) return;
  MPI_Cancel(&control_receive_);
  MPI_Wait(&control_receive_, MPI_STATUS_IGNORE);
  MPI_Finalize();
}

}  // namespace hearth
