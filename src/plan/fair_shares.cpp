#include "plan/fair_shares.h"

#include <algorithm>

#include "base/error.h"

namespace hearth {

FairShares::FairShares(std::span<const double> rates)
    : rates_(rates), left_(rates.begin(), rates.end()), waiting_(rates.size()) {}

void FairShares::divide(std::vector<Flow>& flows) {
  used_.clear();
  for (Flow& flow : flows) {
    flow.rate = 0;
    for (const int32_t r : flow.through) {
      if (!limited(r)) continue;
      if (waiting_[static_cast<size_t>(r)]++ == 0) used_.push_back(r);
    }
  }
  for (size_t fixed = 0; fixed < flows.size();) {
    int32_t tightest = -1;
    double share = 0;
    for (const int32_t r : used_) {
      const auto at = static_cast<size_t>(r);
      if (waiting_[at] == 0) continue;
      const double of_each = left_[at] / waiting_[at];
      if (tightest >= 0 && of_each >= share) continue;
      tightest = r;
      share = of_each;
    }
    HEARTH_CHECK(tightest >= 0, "fair shares: a flow without a limit");
    for (Flow& flow : flows) {
      if (flow.rate > 0 || std::ranges::find(flow.through, tightest) == flow.through.end()) {
        continue;
      }
      flow.rate = share;
      ++fixed;
      for (const int32_t r : flow.through) {
        if (!limited(r)) continue;
        left_[static_cast<size_t>(r)] = std::max(0.0, left_[static_cast<size_t>(r)] - share);
        --waiting_[static_cast<size_t>(r)];
      }
    }
  }
  for (const int32_t r : used_) {
    left_[static_cast<size_t>(r)] = rates_[static_cast<size_t>(r)];
    waiting_[static_cast<size_t>(r)] = 0;
  }
}

}  // namespace hearth
