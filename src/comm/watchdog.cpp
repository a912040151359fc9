#include "comm/watchdog.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <deque>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "base/error_format.h"
#include "base/pool.h"
#include "base/stopwatch.h"
#include "comm/control_message.h"
#include "comm/peer_stall.h"
#include "comm/progress_watch.h"
#include "comm/silence_watch.h"

namespace hearth {
namespace {

constexpr double kLastSeconds = 0.2;  // for what is still to be sent at the end
constexpr double kIdlePause = 1;      // without a limit
// MPI may hang because a rank is gone. That rank is to be noticed first.
constexpr double kCallGrace = 2;

/// A connection with what waits to be sent there, and the part of a message that has come.
struct Peer {
  Socket socket;
  std::string out;
  size_t sent = 0;
  std::array<char, sizeof(ControlMessage)> in{};
  size_t have = 0;
  bool has_left = false;

  bool is_idle() const { return sent == out.size(); }

  void add(const ControlMessage& message) {
    if (is_idle()) out.clear(), sent = 0;
    out.append(reinterpret_cast<const char*>(&message), sizeof message);
  }
  // Errors show when the peer is read.
  void send_more() {
    while (socket.is_open() && !is_idle()) {
      const ssize_t n = ::send(socket.fd(), out.data() + sent, out.size() - sent, MSG_NOSIGNAL);
      if (n <= 0) return;
      sent += static_cast<size_t>(n);
    }
  }
};

}  // namespace

class Watchdog::Loop {
 public:
  Loop(int32_t rank, std::vector<std::string> hosts, std::vector<Socket> sockets,
       WatchdogCalls calls)
      : rank_(rank),
        hosts_(std::move(hosts)),
        calls_(std::move(calls)),
        peers_(sockets.size()),
        silence_(static_cast<int32_t>(sockets.size())),
        stalls_(hosts_),
        wake_(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
    if (!wake_.is_open()) throw device_error("the watchdog: no eventfd");
    for (size_t r = 0; r < sockets.size(); ++r) peers_[r].socket = std::move(sockets[r]);
    peers_[static_cast<size_t>(rank_)].has_left = true;  // of the others alone
    thread_ = std::thread([this] { run(); });
  }
  ~Loop() {
    change([&] { ends_ = true; });
    thread_.join();
  }

  void watch(double silence_s) {
    change([&] { silence_s_ = silence_s; });
  }
  bool all_have_left() const { return all_have_left_; }
  void send_to_all(const ControlMessage& message) {
    change([&] { messages_.push_back(message); });
  }

 private:
  template <class Change>
  void change(const Change& set) {
    {
      const std::lock_guard lock(mutex_);
      set();
    }
    ::eventfd_write(wake_.fd(), 1);
  }

  void run() {
    unbind_thread();
    while (!take_up()) {
      for (Peer& peer : peers_) peer.send_more();
      wait();
      read_all();
      look();
    }
    for (const Stopwatch time; time.seconds() < kLastSeconds;) {
      for (Peer& peer : peers_) peer.send_more();
      if (std::ranges::all_of(peers_, &Peer::is_idle)) return;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  }

  // What other threads want. True: the end.
  bool take_up() {
    std::deque<ControlMessage> messages;
    std::optional<double> silence;
    bool ends = false;
    {
      const std::lock_guard lock(mutex_);
      messages.swap(messages_);
      silence.swap(silence_s_);
      ends = ends_;
    }
    if (silence) {
      silence_.set_limit(*silence, steady_seconds());
      progress_.set_beat(silence_.beat_s());
      stalls_.set_limit(*silence > 0 ? std::max(*silence, calls_.least_stall_s) : 0,
                        silence_.beat_s());
    }
    for (const ControlMessage& message : messages) {
      for (Peer& peer : peers_) {
        if (peer.socket.is_open()) peer.add(message);
      }
    }
    return ends;
  }

  void wait() {
    polled_.assign(1, {wake_.fd(), POLLIN, 0});
    for (const Peer& peer : peers_) {
      const short events = static_cast<short>(POLLIN | (peer.is_idle() ? 0 : POLLOUT));
      polled_.push_back({peer.socket.fd(), events, 0});  // no descriptor: left out
    }
    const double pause = silence_.is_on() ? silence_.pause_s() : kIdlePause;
    ::poll(polled_.data(), polled_.size(), static_cast<int>(pause * 1e3) + 1);
    eventfd_t count = 0;
    ::eventfd_read(wake_.fd(), &count);
  }

  void read_all() {
    for (size_t r = 0; r < peers_.size(); ++r) {
      if (peers_[r].socket.is_open()) read(static_cast<int32_t>(r), peers_[r]);
    }
  }

  void read(int32_t rank, Peer& peer) {
    for (;;) {
      const ssize_t n =
          ::recv(peer.socket.fd(), peer.in.data() + peer.have, peer.in.size() - peer.have, 0);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
      if (n <= 0) {
        // A connection that the network gave up says nothing of the rank: it will be silent.
        const bool ended = n == 0 || errno == ECONNRESET || errno == EPIPE;
        peer.socket = Socket();
        if (ended && !peer.has_left) report(failure_of(rank, PeerFault::died));
        return;
      }
      peer.have += static_cast<size_t>(n);
      if (peer.have < peer.in.size()) continue;
      peer.have = 0;
      ControlMessage message;
      std::memcpy(static_cast<void*>(&message), peer.in.data(), sizeof message);
      take(rank, peer, message);
    }
  }

  void take(int32_t rank, Peer& peer, const ControlMessage& message) {
    silence_.heard(rank, steady_seconds());
    switch (message.kind) {
      case ControlMessage::Kind::beat: return;
      case ControlMessage::Kind::goodbye:
        peer.has_left = true;
        all_have_left_ = std::ranges::all_of(peers_, &Peer::has_left);
        silence_.left(rank);
        return;
      case ControlMessage::Kind::wait: return look_at(rank, message.wait);
      case ControlMessage::Kind::stall:
        return note({rank, message.rank, message.silent_s, message.at});
      case ControlMessage::Kind::failure:
        return report(failure_in(message, hosts_[static_cast<size_t>(message.rank)]));
    }
  }

  void look() {
    const double now = steady_seconds();
    if (silence_.must_beat(now)) beat();
    silence_.heard(rank_, calls_.in_call_since() + kCallGrace);
    const auto silent = silence_.look(now);
    if (!silent || has_failed_) return;
    PeerFailure failure = failure_of(silent->rank, PeerFault::silent);
    failure.silent_s = silent->seconds;
    if (silent->rank == rank_) {
      failure.fault = PeerFault::own_error;
      failure.detail = fmt::format("MPI has not come back from a call for {:.3g} s, in {}",
                                   silent->seconds + kCallGrace, failure.at.text());
    }
    report(std::move(failure));
  }

  void beat() {
    const bool waits = !mpi_is_in_call();
    ControlMessage message;
    message.rank = rank_;
    for (size_t r = 0; r < peers_.size(); ++r) {
      Peer& peer = peers_[r];
      if (!peer.socket.is_open() || !peer.is_idle()) continue;
      message.kind = ControlMessage::Kind::beat;
      peer.add(message);
      if (!waits) continue;
      message.kind = ControlMessage::Kind::wait;
      for (const PieceWait& wait : calls_.pieces->waits(static_cast<int32_t>(r))) {
        message.wait = wait;
        peer.add(message);
      }
    }
  }

  // Then this rank knows nothing of messages, and `look` notices if MPI never comes back.
  bool mpi_is_in_call() const {
    return steady_seconds() - calls_.in_call_since() > silence_.beat_s();
  }

  void look_at(int32_t rank, const PieceWait& wait) {
    const bool is_sent =
        !mpi_is_in_call() && calls_.pieces->has_sent_more(wait.group, rank, wait.arrived);
    const double stalled_s =
        progress_.heard(rank, wait, is_sent, calls_.pieces->ended(), steady_seconds());
    if (!stalls_.must_tell(stalled_s)) return;
    if (rank_ == 0) return note({rank_, rank, stalled_s, wait.at});
    ControlMessage message;
    message.kind = ControlMessage::Kind::stall;
    message.rank = rank;
    message.silent_s = stalled_s;
    message.at = wait.at;
    if (peers_[0].socket.is_open()) peers_[0].add(message);
  }

  // Of rank 0.
  void note(const PeerStall& stall) {
    auto failure = stalls_.note(stall, steady_seconds());
    if (failure && !has_failed_) report(std::move(*failure));
  }

  PeerFailure failure_of(int32_t rank, PeerFault fault) const {
    PeerFailure failure;
    failure.rank = rank;
    failure.host = hosts_[static_cast<size_t>(rank)];
    failure.fault = fault;
    failure.at = calls_.point();
    return failure;
  }

  void report(PeerFailure failure) {
    has_failed_ = true;
    calls_.failed(std::move(failure));
  }

  const int32_t rank_;
  const std::vector<std::string> hosts_;
  const WatchdogCalls calls_;
  // Of the thread.
  std::vector<Peer> peers_;
  std::vector<pollfd> polled_;
  SilenceWatch silence_;
  ProgressWatch progress_;
  StallJudge stalls_;
  bool has_failed_ = false;
  std::atomic<bool> all_have_left_ = false;  // others read it

  std::mutex mutex_;
  std::deque<ControlMessage> messages_;  // to all
  std::optional<double> silence_s_;
  bool ends_ = false;

  const Socket wake_;
  std::thread thread_;
};

Watchdog::Watchdog(int32_t rank, std::vector<std::string> hosts, std::vector<Socket> peers,
                   WatchdogCalls calls)
    : loop_(std::make_unique<Loop>(rank, std::move(hosts), std::move(peers), std::move(calls))) {}
Watchdog::~Watchdog() = default;

void Watchdog::watch(double silence_s) { loop_->watch(silence_s); }

void Watchdog::tell(const PeerFailure& failure) { loop_->send_to_all(message_of(failure)); }

bool Watchdog::all_have_left() const { return loop_->all_have_left(); }

void Watchdog::say_goodbye() {
  ControlMessage message;
  message.kind = ControlMessage::Kind::goodbye;
  loop_->send_to_all(message);
}

}  // namespace hearth
