#include "report/repeated_steps.h"

#include <algorithm>
#include <iterator>
#include <map>

namespace hearth {

void RepeatedSteps::add(int64_t step) {
  if (!runs_.empty() && runs_.back().last + 1 == step) {
    runs_.back().last = step;
  } else {
    runs_.push_back({step, step});
  }
}

void RepeatedSteps::settle() {
  std::map<int64_t, int64_t> covered;  // by later runs: first and last of disjoint parts
  std::vector<std::vector<Steps>> parts(runs_.size());
  for (size_t i = runs_.size(); i-- > 0;) {
    const auto [first, last] = runs_[i];
    int64_t open = first;  // the first step that may count
    auto at = covered.upper_bound(first);
    if (at != covered.begin() && std::prev(at)->second >= first) --at;
    int64_t joined_first = first, joined_last = last;
    while (at != covered.end() && at->first <= last) {
      if (at->first > open) parts[i].push_back({open, at->first - 1});
      open = at->second + 1;
      joined_first = std::min(joined_first, at->first);
      joined_last = std::max(joined_last, at->second);
      at = covered.erase(at);
    }
    if (open <= last) parts[i].push_back({open, last});
    covered[joined_first] = joined_last;
  }
  for (const std::vector<Steps>& of_run : parts) {
    begin_.push_back(counting_.size());
    counting_.insert(counting_.end(), of_run.begin(), of_run.end());
  }
  begin_.push_back(counting_.size());
}

bool RepeatedSteps::counts(int64_t step) {
  if (begun_ && step != step_ + 1) ++run_;
  if (!begun_ || step != step_ + 1) part_ = begin_[run_];
  begun_ = true;
  step_ = step;
  while (part_ < begin_[run_ + 1] && counting_[part_].last < step) ++part_;
  return part_ < begin_[run_ + 1] && counting_[part_].first <= step;
}

}  // namespace hearth
