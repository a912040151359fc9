// TCP connections between every two processes of a run, for the watchdog alone (comm/watchdog.h).
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace hearth {

/// Owns a file descriptor of a socket.
class Socket {
 public:
  Socket() = default;
  explicit Socket(int fd) : fd_(fd) {}
  ~Socket();
  Socket(Socket&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Socket& operator=(Socket&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  int fd() const { return fd_; }
  bool is_open() const { return fd_ >= 0; }

 private:
  int fd_ = -1;
};

/// Where a rank can be reached. As it lies in memory, ranks send it to each other.
struct PeerAddress {
  uint64_t secret = 0;  // only who knows it may connect
  uint16_t port = 0;    // network order
  uint16_t count = 0;
  std::array<uint32_t, 16> hosts{};  // IPv4, network order; the first `count`
};

/// Listens on all IPv4 addresses of the host, on a port that the system chooses. Device error if the
/// system has no socket for it.
class PeerListener {
 public:
  explicit PeerListener(int32_t rank);
  const PeerAddress& address() const { return address_; }

  /// All ranks call this, with the addresses of all by rank. Returns within about `seconds` the
  /// connections by rank, which do not block. One that could not be made is not open, and neither is
  /// that of the own rank.
  std::vector<Socket> meet(std::span<const PeerAddress> all, double seconds);

 private:
  int32_t rank_ = 0;
  Socket socket_;
  PeerAddress address_;
};

}  // namespace hearth
