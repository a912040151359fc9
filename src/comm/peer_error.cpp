#include "comm/peer_error.h"

#include <fmt/format.h>

#include <utility>

namespace hearth {

std::string_view name_of(CommKind kind) {
  switch (kind) {
    case CommKind::none: return "the setup of the ranks";
    case CommKind::exchange: return "exchange";
    case CommKind::gather: return "gather";
    case CommKind::transfer: return "transfer";
    case CommKind::send: return "send";
    case CommKind::receive: return "receive";
  }
  return "";
}

std::string CommPoint::text() const {
  if (kind == CommKind::none) return std::string(name_of(kind));
  return fmt::format("{} {} of step {}", name_of(kind), label.number, label.step);
}

std::string named_rank(int32_t rank, const std::string& host) {
  return fmt::format("rank {} (host {})", rank, host);
}

namespace {

/// Whether a line is of a rank that it names: rank 0 speaks for others, whose files it commits.
bool names_rank(std::string_view line) {
  constexpr std::string_view kRank = "rank ";
  if (!line.starts_with(kRank)) return false;
  const size_t digits = line.find_first_not_of("0123456789", kRank.size());
  return digits > kRank.size() && digits != line.npos && line.substr(digits).starts_with(" (host ");
}

}  // namespace

std::string PeerFailure::line() const {
  const std::string who = named_rank(rank, host);
  switch (fault) {
    case PeerFault::own_error: return names_rank(detail) ? detail : who + ": " + detail;
    case PeerFault::died: return who + " died, in " + at.text();
    case PeerFault::silent:
      return fmt::format("{} gave no sign of life for {:.3g} s, in {}", who, silent_s, at.text());
    case PeerFault::cut_off:
    case PeerFault::mismatch: return who + " " + detail;
  }
  return who;
}

PeerError::PeerError(PeerFailure failure)
    : Error(failure.code, failure.line()), failure_(std::move(failure)) {}

}  // namespace hearth
