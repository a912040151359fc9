#include "train/state_channel.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <thread>
#include <utility>

namespace hearth {

namespace {

constexpr std::chrono::microseconds kFirstPause{20}, kLongestPause{5000};

template <class T>
ConstBytes bytes_of(const T& value) {
  return {reinterpret_cast<const std::byte*>(&value), sizeof value};
}
template <class T>
Bytes room_of(T& value) {
  return {reinterpret_cast<std::byte*>(&value), sizeof value};
}

}  // namespace

/// Looks, and does not block: the rank's main thread may be in a step, and who waits may be taken for
/// a rank that waits.
void StateChannel::wait_for(std::unique_ptr<Pending> operation, const std::function<void()>& look) {
  for (auto pause = kFirstPause; !operation->reached();
       pause = std::min(2 * pause, kLongestPause)) {
    if (look) look();
    std::this_thread::sleep_for(pause);
  }
}

void StateChannel::begin(int64_t step) {
  if (step > label_.step) label_ = {step, 0};
}

void StateChannel::send(ConstBytes bytes) {
  wait_for(comm_->send(next(), 1 - comm_->rank(), bytes));
}
void StateChannel::receive(Bytes bytes) {
  wait_for(comm_->receive(next(), 1 - comm_->rank(), bytes));
}

void StateChannel::ask(const StateRequest& request) { send(bytes_of(request)); }

StateRequest StateChannel::hear() {
  StateRequest request;
  receive(room_of(request));
  return request;
}

void StateChannel::send_text(const std::string& text) {
  const uint64_t size = text.size();
  send(bytes_of(size));
  send({reinterpret_cast<const std::byte*>(text.data()), text.size()});
}

std::string StateChannel::receive_text(const std::function<void()>& look) {
  uint64_t size = 0;
  wait_for(comm_->receive(next(), 1 - comm_->rank(), room_of(size)), look);
  std::string text(size, '\0');
  receive({reinterpret_cast<std::byte*>(text.data()), text.size()});
  return text;
}

std::vector<StateChannel> make_state_channels(World& world) {
  std::vector<StateChannel> channels;
  if (world.rank() == 0) channels.emplace_back(nullptr);
  for (int32_t rank = 1; rank < world.size(); ++rank) {
    auto comm = world.group(std::array{0, rank});
    if (comm) channels.emplace_back(std::move(comm));
  }
  return channels;
}

}  // namespace hearth
