#include "comm/peer_sockets.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <random>
#include <system_error>
#include <thread>

#include "base/error_format.h"
#include "base/stopwatch.h"

namespace hearth {
namespace {

constexpr double kConnectSeconds = 1;  // to one address; others follow
constexpr double kAnswerSeconds = 3;

struct Greeting {
  uint64_t secret = 0;  // of the rank that is called
  int32_t from = 0, to = 0;
};

int checked(int result, const char* call) {
  if (result < 0) {
    throw device_error("{}: {}", call, std::generic_category().message(errno));
  }
  return result;
}

// Waits for `events` on a socket; false: the time was over.
bool wait_for(const Socket& socket, short events, double seconds) {
  const Stopwatch time;
  for (;;) {
    const double left = std::max(0.0, seconds - time.seconds());
    pollfd one{socket.fd(), events, 0};
    const int found = ::poll(&one, 1, static_cast<int>(left * 1e3) + 1);
    if (found > 0) return true;
    if (found == 0 || errno != EINTR || left == 0) return false;
  }
}

bool send_all(const Socket& socket, const Greeting& greeting) {
  return ::send(socket.fd(), &greeting, sizeof greeting, MSG_NOSIGNAL) == sizeof greeting;
}

bool receive_all(const Socket& socket, Greeting& greeting, double seconds) {
  const Stopwatch time;
  size_t have = 0;
  while (have < sizeof greeting) {
    if (!wait_for(socket, POLLIN, seconds - time.seconds())) return false;
    const ssize_t got = ::recv(socket.fd(), reinterpret_cast<std::byte*>(&greeting) + have,
                               sizeof greeting - have, 0);
    if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) return false;
    if (got > 0) have += static_cast<size_t>(got);
  }
  return true;
}

void send_at_once(const Socket& socket) {
  const int on = 1;
  ::setsockopt(socket.fd(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

Socket connect_to(uint32_t host, uint16_t port) {
  Socket socket(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!socket.is_open()) return {};
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = port;
  to.sin_addr.s_addr = host;
  if (::connect(socket.fd(), reinterpret_cast<const sockaddr*>(&to), sizeof to) != 0) {
    if (errno != EINPROGRESS || !wait_for(socket, POLLOUT, kConnectSeconds)) return {};
    int error = 0;
    socklen_t size = sizeof error;
    if (::getsockopt(socket.fd(), SOL_SOCKET, SO_ERROR, &error, &size) != 0 || error != 0)
      return {};
  }
  send_at_once(socket);
  return socket;
}

// Another process may answer at an address, since hosts number their own networks alike.
Socket call(const PeerAddress& address, int32_t own, int32_t peer, double seconds) {
  const Stopwatch time;
  do {
    for (uint16_t i = 0; i < address.count; ++i) {
      Socket socket = connect_to(address.hosts[i], address.port);
      Greeting answer;
      if (socket.is_open() && send_all(socket, {address.secret, own, peer}) &&
          receive_all(socket, answer, kAnswerSeconds) && answer.secret == address.secret &&
          answer.from == peer && answer.to == own) {
        return socket;
      }
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  } while (time.seconds() < seconds);
  return {};
}

}  // namespace

Socket::~Socket() {
  if (fd_ >= 0) ::close(fd_);
}

PeerListener::PeerListener(int32_t rank) : rank_(rank) {
  socket_ = Socket(checked(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0),
                           "the watchdog: socket"));
  sockaddr_in own{};
  own.sin_family = AF_INET;
  own.sin_addr.s_addr = htonl(INADDR_ANY);
  socklen_t size = sizeof own;
  checked(::bind(socket_.fd(), reinterpret_cast<const sockaddr*>(&own), size),
          "the watchdog: bind");
  checked(::listen(socket_.fd(), SOMAXCONN), "the watchdog: listen");
  checked(::getsockname(socket_.fd(), reinterpret_cast<sockaddr*>(&own), &size),
          "the watchdog: getsockname");
  address_.port = own.sin_port;
  std::random_device random;
  address_.secret = (uint64_t{random()} << 32) | random();

  ifaddrs* list = nullptr;
  checked(::getifaddrs(&list), "the watchdog: getifaddrs");
  // Ranks of one host find each other at any address; the loopback's is the last that others try.
  for (const bool loopback : {false, true}) {
    for (const ifaddrs* one = list; one != nullptr; one = one->ifa_next) {
      if (one->ifa_addr == nullptr || one->ifa_addr->sa_family != AF_INET) continue;
      if (((one->ifa_flags & IFF_LOOPBACK) != 0) != loopback || (one->ifa_flags & IFF_UP) == 0)
        continue;
      if (address_.count == address_.hosts.size()) break;
      sockaddr_in found{};
      std::memcpy(&found, one->ifa_addr, sizeof found);
      address_.hosts[address_.count++] = found.sin_addr.s_addr;
    }
  }
  ::freeifaddrs(list);
}

// Each rank calls those below it while it answers those above.
std::vector<Socket> PeerListener::meet(std::span<const PeerAddress> all, double seconds) {
  std::vector<Socket> peers(all.size());
  const Stopwatch time;
  std::thread caller([&] {
    for (int32_t peer = 0; peer < rank_; ++peer) {
      const auto at = static_cast<size_t>(peer);
      peers[at] = call(all[at], rank_, peer, seconds - time.seconds());
    }
  });
  for (auto left = static_cast<int32_t>(all.size()) - 1 - rank_; left > 0;) {
    if (!wait_for(socket_, POLLIN, seconds - time.seconds())) break;
    Socket socket(::accept4(socket_.fd(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    Greeting greeting;
    if (!socket.is_open() || !receive_all(socket, greeting, kAnswerSeconds)) continue;
    if (greeting.secret != address_.secret || greeting.to != rank_ || greeting.from <= rank_ ||
        greeting.from >= static_cast<int32_t>(all.size())) {
      continue;
    }
    send_at_once(socket);
    if (!send_all(socket, {address_.secret, rank_, greeting.from})) continue;
    Socket& peer = peers[static_cast<size_t>(greeting.from)];
    if (!peer.is_open()) --left;
    peer = std::move(socket);  // a rank that calls again gave its first call up
  }
  caller.join();
  return peers;
}

}  // namespace hearth
