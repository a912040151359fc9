// How a rank ends the run of all ranks, and the line that each of them raises.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.h"

namespace hearth {

/// What ranks do together. `transfer` is the general form; the others are its cases.
enum class CommKind : uint8_t { none, exchange, gather, transfer, send, receive };
/// "exchange", as lines name it; of `none` the setup, which has no number.
std::string_view name_of(CommKind kind);

/// Names an operation: the same on every rank that takes part.
struct CommLabel {
  int64_t step = 0;
  int32_t number = 0;  // of the step
  bool operator==(const CommLabel&) const = default;
};

/// An operation as lines name it: "exchange 12 of step 3".
struct CommPoint {
  CommKind kind = CommKind::none;
  CommLabel label;
  std::string text() const;
  bool operator==(const CommPoint&) const = default;
};

enum class PeerFault : uint8_t {
  own_error,  // the rank failed by itself and said why
  died,       // it left before it had done what others wait for
  silent,     // it gave no sign of life for too long
  cut_off,    // it gives signs of life, but messages no longer move between it and others
  mismatch,   // ranks do not issue the same operations: a bug
};

/// A rank as lines name it: "rank 2 (host h)".
std::string named_rank(int32_t rank, const std::string& host);

/// The failure that ends a run. All ranks keep the first one that they know of.
struct PeerFailure {
  int32_t rank = 0;
  std::string host;
  PeerFault fault = PeerFault::own_error;
  ExitCode code = ExitCode::device;
  CommPoint at;         // where it was noticed
  double silent_s = 0;  // of `silent`; of `cut_off` how long nothing has moved
  std::string detail;   // of own errors; of mismatches and `cut_off`, what the rank does
  /// The line, as CLI texts give it: "rank 2 (host h) died, in exchange 12 of step 3".
  std::string line() const;
};

/// Raised by operations of a run that has failed, at every rank. Its exit code is 6 for a rank that
/// died or fell silent, and for an own error that of the rank.
class PeerError : public Error {
 public:
  explicit PeerError(PeerFailure failure);
  const PeerFailure& failure() const { return failure_; }

 private:
  PeerFailure failure_;
};

}  // namespace hearth
