#include "plan/decisions/split_problem.h"

namespace hearth {

std::string_view name_of(SplitReason reason) {
  switch (reason) {
    case SplitReason::none: return "";
    case SplitReason::resident: return "resident";
    case SplitReason::prefetched: return "prefetched";
    case SplitReason::loaded: return "loaded";
    case SplitReason::host_cheaper: return "host-cheaper";
    case SplitReason::host_balance: return "host-balance";
    case SplitReason::no_room: return "no-room";
    case SplitReason::split: return "split";
    case SplitReason::policy: return "policy";
  }
  return "";
}

SplitReason reason_named(std::string_view name) {
  for (int i = 1; i <= static_cast<int>(SplitReason::policy); ++i) {
    if (name_of(static_cast<SplitReason>(i)) == name) return static_cast<SplitReason>(i);
  }
  return SplitReason::none;
}

}  // namespace hearth
