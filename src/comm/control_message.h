// What ranks tell each other about the run itself: over MPI, and over connections of the watchdog.
#pragma once

#include <cstdint>
#include <string>

#include "comm/peer_error.h"
#include "comm/piece_counts.h"

namespace hearth {

/// Sent as it lies in memory: all ranks run one program.
struct ControlMessage {
  enum class Kind : uint8_t { beat, goodbye, failure, wait, stall };
  Kind kind = Kind::beat;
  int32_t rank =
      0;  // of a failure: who failed; of a stall: who waits for the sender; else the sender
  PieceWait wait;  // of a wait
  // Of a failure; `at` and `silent_s` also of a stall.
  PeerFault fault = PeerFault::own_error;
  ExitCode code = ExitCode::device;
  CommPoint at;
  double silent_s = 0;
  char detail[1024] = {};
};

/// A longer detail loses its end.
ControlMessage message_of(const PeerFailure& failure);
/// `host`: of the rank that failed.
PeerFailure failure_in(const ControlMessage& message, const std::string& host);

}  // namespace hearth
