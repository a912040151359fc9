#include "comm/thread_hub.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>

#include "base/stopwatch.h"
#include "base/system.h"

namespace hearth {
namespace {

constexpr double kMostTick = 0.05;  // seconds between two looks at the other ranks
constexpr double kLongUnseen = 1;  // seconds without a look: all waited for nobody, or were stopped

}  // namespace

ThreadHub::ThreadHub(const ThreadWorldOptions& options)
    : host_(own_host_name()),
      latency_s_(options.links.latency_s),
      clock_(options.clock != nullptr ? *options.clock : steady_link_clock()),
      silence_s_(options.silence_s),
      states_(static_cast<size_t>(options.ranks)) {
  for (RankState& rank : states_) {
    rank.last_sign = steady_seconds();
    rank.out = std::make_unique<Link>(options.links.bytes_per_s);
    rank.in = std::make_unique<Link>(options.links.bytes_per_s);
  }
}

void ThreadHub::sign(int32_t rank) { state(rank).last_sign = steady_seconds(); }

void ThreadHub::raise_if_failed() const {
  if (failure_) throw PeerError(*failure_);
}

PeerFailure ThreadHub::failure_at(int32_t rank, PeerFault fault, const CommPoint& point) const {
  PeerFailure failure;
  failure.rank = rank;
  failure.host = host_;
  failure.fault = fault;
  failure.code = fault == PeerFault::mismatch ? ExitCode::internal : ExitCode::device;
  failure.at = point;
  return failure;
}

void ThreadHub::set_failure(PeerFailure failure) {
  if (failure_) return;
  failure_ = std::move(failure);
  for (RankState& rank : states_) rank.changed.notify_all();
}

int64_t ThreadHub::join(int32_t rank, std::span<const int32_t> members) {
  const std::lock_guard lock(mutex_);
  raise_if_failed();
  sign(rank);
  const int64_t number = state(rank).groups++;
  if (static_cast<size_t>(number) == groups_.size()) {
    groups_.emplace_back(members.begin(), members.end());
  }
  const std::vector<int32_t>& made = groups_[static_cast<size_t>(number)];
  if (!std::equal(made.begin(), made.end(), members.begin(), members.end())) {
    PeerFailure failure = failure_at(rank, PeerFault::mismatch, {});
    failure.detail =
        fmt::format("makes group {} of ranks {}, where another rank made one of ranks {}", number,
                    fmt::join(members, ", "), fmt::join(made, ", "));
    set_failure(std::move(failure));
    raise_if_failed();
  }
  return number;
}

// Both sides name one operation, and its size.
void ThreadHub::check_meeting(const Meeting& meeting) {
  const ThreadOperation& from = *meeting.sender.operation;
  const ThreadOperation& to = *meeting.receiver.operation;
  const auto kind = [](CommKind k) { return k == CommKind::receive ? CommKind::send : k; };
  std::string field;
  if (from.is_record && to.is_record) return;
  if (from.point.label.step != to.point.label.step) {
    field = "the step differs";
  } else if (from.point.label.number != to.point.label.number) {
    field = "the number differs";
  } else if (kind(from.point.kind) != kind(to.point.kind)) {
    field = "the kind differs";
  } else if (meeting.sender.memory.bytes != meeting.receiver.memory.bytes) {
    field = fmt::format("the bytes differ: {} are sent, {} expected", meeting.sender.memory.bytes,
                        meeting.receiver.memory.bytes);
  }
  if (field.empty()) return;
  PeerFailure failure = failure_at(from.rank, PeerFault::mismatch, from.point);
  failure.detail = fmt::format("is in {}, and {} in {}: {}", from.point.text(),
                               named_rank(to.rank, host_), to.point.text(), field);
  set_failure(std::move(failure));
}

// Puts a side into its lane, or finds its other side there.
void ThreadHub::meet(LaneKey key, Side side, bool sends, std::vector<Meeting>& met) {
  Lane& lane = lanes_[key];
  std::deque<Side>& others = sends ? lane.receivers : lane.senders;
  if (others.empty()) {
    side.operation->missing.push_back(static_cast<int32_t>(sends ? key[2] : key[1]));
    (sends ? lane.senders : lane.receivers).push_back(std::move(side));
    return;
  }
  Side other = std::move(others.front());
  others.pop_front();
  std::vector<int32_t>& missing = other.operation->missing;
  missing.erase(std::find(missing.begin(), missing.end(), side.operation->rank));
  ++other.operation->moving;
  ++side.operation->moving;
  Meeting meeting = sends ? Meeting{std::move(side), std::move(other)}
                          : Meeting{std::move(other), std::move(side)};
  check_meeting(meeting);
  met.push_back(std::move(meeting));
}

// When a message that both sides have issued will have passed the links.
double ThreadHub::book(int32_t from, int32_t to, size_t bytes) {
  const double now = clock_.now();
  if (from == to) return now;
  const double begin = now + latency_s_;
  return std::max(state(from).out->book(begin, bytes), state(to).in->book(begin, bytes));
}

std::shared_ptr<ThreadOperation> ThreadHub::post(int32_t rank, int64_t group,
                                                 std::span<const int32_t> members,
                                                 Operation operation) {
  auto issued = std::make_shared<ThreadOperation>();
  issued->rank = rank;
  issued->point = operation.point;
  issued->is_record = operation.is_record;
  std::vector<Meeting> met;
  std::vector<double> ready;
  bool failed = false;
  {
    const std::lock_guard lock(mutex_);
    raise_if_failed();
    sign(rank);
    for (const Outgoing& message : operation.out) {
      const int32_t to = members[static_cast<size_t>(message.to)];
      meet({group, rank, to},
           {issued, {const_cast<std::byte*>(message.bytes.data), message.bytes.bytes}}, true, met);
    }
    for (const Incoming& message : operation.in) {
      const int32_t from = members[static_cast<size_t>(message.from)];
      meet({group, from, rank}, {issued, message.bytes}, false, met);
    }
    failed = failure_.has_value();
    for (const Meeting& meeting : met) {
      ready.push_back(book(meeting.sender.operation->rank, meeting.receiver.operation->rank,
                           meeting.sender.memory.bytes));
    }
  }
  for (const Meeting& meeting : met) {
    const Bytes& from = meeting.sender.memory;
    const Bytes& to = meeting.receiver.memory;
    if (!failed && from.bytes > 0 && from.data != to.data) {
      std::memcpy(to.data, from.data, from.bytes);
    }
  }
  const std::lock_guard lock(mutex_);
  for (size_t i = 0; i < met.size(); ++i) {
    for (const auto& side : {met[i].sender.operation, met[i].receiver.operation}) {
      --side->moving;
      side->ready_at = std::max(side->ready_at, ready[i]);
      if (side->ended() || failure_) state(side->rank).changed.notify_all();
    }
  }
  if (failed) {
    withdraw(*issued);
    raise_if_failed();
  }
  return issued;
}

void ThreadHub::withdraw(ThreadOperation& operation) {
  for (auto& [key, lane] : lanes_) {
    for (std::deque<Side>* sides : {&lane.senders, &lane.receivers}) {
      std::erase_if(*sides, [&](const Side& side) { return side.operation.get() == &operation; });
    }
  }
  operation.missing.clear();
}

bool ThreadHub::reached(ThreadOperation& operation) {
  const std::lock_guard lock(mutex_);
  sign(operation.rank);
  if (operation.ended()) return clock_.now() >= operation.ready_at;
  look_for_failure(operation, steady_seconds());
  if (failure_ && operation.moving == 0) {
    withdraw(operation);
    raise_if_failed();
  }
  return false;
}

// Of the ranks that the operation waits for: has one left, or fallen silent? Do all wait?
void ThreadHub::look_for_failure(const ThreadOperation& operation, double now) {
  if (failure_) return;
  if (now - std::exchange(last_look_, now) > kLongUnseen) {  // each has as long again
    for (RankState& rank : states_) rank.last_sign = now;
  }
  for (const int32_t peer : operation.missing) {
    const RankState& other = state(peer);
    const double silent = now - other.last_sign;
    if (other.left) {
      return set_failure(failure_at(peer, PeerFault::died, operation.point));
    }
    if (silence_s_ > 0 && other.waiting == 0 && other.away == 0 && silent > silence_s_) {
      PeerFailure failure = failure_at(peer, PeerFault::silent, operation.point);
      failure.silent_s = silent;
      return set_failure(std::move(failure));
    }
  }
  if (silence_s_ <= 0 || operation.missing.empty()) return;
  for (const RankState& rank : states_) {
    if (!rank.left && (rank.waiting == 0 || now - rank.last_sign <= silence_s_)) return;
  }
  PeerFailure failure = failure_at(operation.rank, PeerFault::mismatch, operation.point);
  failure.detail = fmt::format("waits for rank {} in {}, and all ranks wait for one another",
                               operation.missing.front(), operation.point.text());
  set_failure(std::move(failure));
}

void ThreadHub::wait(ThreadOperation& operation) {
  RankState& own = state(operation.rank);
  double end = 0;
  {
    std::unique_lock lock(mutex_);
    own.last_sign = steady_seconds();
    ++own.waiting;
    while (!operation.ended()) {
      look_for_failure(operation, steady_seconds());
      if (failure_) {
        own.changed.wait(lock, [&] { return operation.moving == 0; });
        withdraw(operation);
        --own.waiting;
        raise_if_failed();
      }
      const double tick = silence_s_ > 0 ? std::min(kMostTick, silence_s_ / 4) : kMostTick;
      own.changed.wait_for(lock, std::chrono::duration<double>(tick));
    }
    end = operation.ready_at;
  }
  // In pieces: a rank that fails meanwhile does not let the others wait for a slow link.
  std::optional<PeerFailure> failure;
  for (double now = clock_.now(); now < end && !failure; now = clock_.now()) {
    clock_.sleep_until(std::min(end, now + kMostTick));
    const std::lock_guard lock(mutex_);
    sign(operation.rank);
    failure = failure_;
  }
  const std::lock_guard lock(mutex_);
  --own.waiting;
  sign(operation.rank);
  if (failure) throw PeerError(*failure);
}

void ThreadHub::abandon(ThreadOperation& operation) {
  std::unique_lock lock(mutex_);
  if (operation.ended()) return;
  if (!operation.missing.empty() && !failure_) state(operation.rank).left = true;
  withdraw(operation);
  state(operation.rank).changed.wait(lock, [&] { return operation.moving == 0; });
}

PeerError ThreadHub::fail(PeerFailure failure) {
  const std::lock_guard lock(mutex_);
  set_failure(std::move(failure));
  return PeerError(*failure_);
}

void ThreadHub::beat(int32_t rank) {
  const std::lock_guard lock(mutex_);
  raise_if_failed();
  sign(rank);
}

void ThreadHub::watch(double silence_s) {
  const std::lock_guard lock(mutex_);
  silence_s_ = silence_s;
}

void ThreadHub::set_away(int32_t rank, bool away) {
  const std::lock_guard lock(mutex_);
  state(rank).away += away ? 1 : -1;
  sign(rank);
}

void ThreadHub::leave(int32_t rank) {
  const std::lock_guard lock(mutex_);
  state(rank).left = true;
  for (RankState& other : states_) other.changed.notify_all();
}

}  // namespace hearth
