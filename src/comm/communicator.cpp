#include "comm/communicator.h"

#include "base/stopwatch.h"

#include <algorithm>
#include <utility>

namespace hearth {

Communicator::Communicator(std::vector<int32_t> ranks, int32_t rank,
                           std::shared_ptr<SentBytes> sent)
    : ranks_(std::move(ranks)), sent_(std::move(sent)) {
  const auto at = std::find(ranks_.begin(), ranks_.end(), rank);
  HEARTH_CHECK(at != ranks_.end(), "communicator: a rank outside of its group");
  rank_ = static_cast<int32_t>(at - ranks_.begin());
}

std::unique_ptr<Pending> Communicator::exchange(CommLabel label, std::span<const ConstBytes> to,
                                                std::span<const Bytes> from) {
  HEARTH_CHECK(to.size() == ranks_.size() && from.size() == ranks_.size(),
               "exchange: one message for each rank of the group");
  Operation operation{{CommKind::exchange, label}, {}, {}, false};
  for (int32_t r = 0; r < size(); ++r) {
    operation.out.push_back({r, to[static_cast<size_t>(r)]});
    operation.in.push_back({r, from[static_cast<size_t>(r)]});
  }
  return run(std::move(operation));
}

std::unique_ptr<Pending> Communicator::gather(CommLabel label, ConstBytes own,
                                              std::span<const Bytes> from) {
  HEARTH_CHECK(from.size() == ranks_.size(), "gather: one message from each rank of the group");
  Operation operation{{CommKind::gather, label}, {}, {}, false};
  for (int32_t r = 0; r < size(); ++r) {
    operation.out.push_back({r, own});
    operation.in.push_back({r, from[static_cast<size_t>(r)]});
  }
  return run(std::move(operation));
}

std::unique_ptr<Pending> Communicator::transfer(CommLabel label, std::vector<Outgoing> to,
                                                std::vector<Incoming> from) {
  return run({{CommKind::transfer, label}, std::move(to), std::move(from), false});
}

std::unique_ptr<Pending> Communicator::send(CommLabel label, int32_t to, ConstBytes bytes) {
  HEARTH_CHECK(to != rank_, "send: to itself");
  return run({{CommKind::send, label}, {{to, bytes}}, {}, false});
}

std::unique_ptr<Pending> Communicator::receive(CommLabel label, int32_t from, Bytes bytes) {
  HEARTH_CHECK(from != rank_, "receive: from itself");
  return run({{CommKind::receive, label}, {}, {{from, bytes}}, false});
}

std::unique_ptr<Pending> Communicator::run(Operation operation) {
  const CommLabel label = operation.point.label;
  if (!operation.is_record) {
    HEARTH_CHECK(
        label.step > last_.step || (label.step == last_.step && label.number > last_.number),
        "labels of a communicator rise: " + operation.point.text());
    last_ = label;
  }
  for (const Outgoing& message : operation.out) {
    HEARTH_CHECK(message.to >= 0 && message.to < size(), "communicator: no such rank");
  }
  for (const Incoming& message : operation.in) {
    HEARTH_CHECK(message.from >= 0 && message.from < size(), "communicator: no such rank");
  }
  std::vector<std::pair<int32_t, size_t>> sent;
  for (const Outgoing& message : operation.out) {
    if (message.to != rank_) {
      sent.emplace_back(ranks_[static_cast<size_t>(message.to)], message.bytes.bytes);
    }
  }
  std::unique_ptr<Pending> pending = start(std::move(operation));
  for (const auto& message : sent) sent_->add(message.first, message.second);
  return pending;
}

void Communicator::wait_for(std::unique_ptr<Pending> operation) {
  const Stopwatch waiting;
  operation->wait();
  waited_s_ += waiting.seconds();
}

}  // namespace hearth
