#include "comm/control_message.h"

#include <cstring>
#include <type_traits>

namespace hearth {

static_assert(std::is_trivially_copyable_v<ControlMessage>);

ControlMessage message_of(const PeerFailure& failure) {
  ControlMessage message;
  message.kind = ControlMessage::Kind::failure;
  message.rank = failure.rank;
  message.fault = failure.fault;
  message.code = failure.code;
  message.at = failure.at;
  message.silent_s = failure.silent_s;
  failure.detail.copy(message.detail, sizeof message.detail - 1);
  return message;
}

PeerFailure failure_in(const ControlMessage& message, const std::string& host) {
  PeerFailure failure;
  failure.rank = message.rank;
  failure.host = host;
  failure.fault = message.fault;
  failure.code = message.code;
  failure.at = message.at;
  failure.silent_s = message.silent_s;
  failure.detail.assign(message.detail, strnlen(message.detail, sizeof message.detail));
  return failure;
}

}  // namespace hearth
