#include "plan/decisions/recorded_splits.h"

#include <algorithm>
#include <iterator>
#include <limits>

namespace hearth {

void RecordedSplits::add(int64_t step, int32_t layer, RecordedSplit split) {
  splits_[{step, layer}].push_back(std::move(split));
}

void RecordedSplits::forget_after(int64_t step) {
  splits_.erase(splits_.lower_bound({step + 1, std::numeric_limits<int32_t>::min()}),
                splits_.end());
}

Error RecordedSplits::missing(int64_t step, int32_t layer, int64_t found) const {
  const auto behind = splits_.upper_bound({step, layer});
  int64_t line = lines_;
  if (behind != splits_.end()) {
    line = behind == splits_.begin() ? behind->second.front().line - 1
                                     : std::prev(behind)->second.back().line;
  }
  line = std::max<int64_t>(1, line);
  return input_error(at_line(line) + "behind this line a decision about layer " +
                     std::to_string(layer) + " in step " + std::to_string(step) + " is missing (" +
                     std::to_string(found) + " found): it is no full journal of this run");
}

std::string RecordedSplits::at_line(int64_t line) const {
  return file_ + ":" + std::to_string(line) + ": ";
}

void RecordedSplits::require(int64_t first, int64_t last,
                             const std::map<int32_t, int64_t>& groups) const {
  for (int64_t step = first; step <= last; ++step) {
    for (const auto& [layer, needed] : groups) {
      const auto found = splits_.find({step, layer});
      const int64_t count = found == splits_.end() ? 0 : std::ssize(found->second);
      if (count < needed) throw missing(step, layer, count);
      if (count == needed) continue;
      throw input_error(at_line(found->second[static_cast<size_t>(needed)].line) + "layer " +
                        std::to_string(layer) + " is decided on " + std::to_string(count) +
                        " times in step " + std::to_string(step) + ", by this run " +
                        std::to_string(needed) + " times: its micro-batches are grouped otherwise");
    }
  }
}

std::vector<double> RecordedSplits::tokens(int64_t step, int32_t layer, int64_t group) const {
  const auto found = splits_.find({step, layer});
  if (found == splits_.end() || group >= std::ssize(found->second)) return {};
  const RecordedSplit& recorded = found->second[static_cast<size_t>(group)];
  return {recorded.tokens.begin(), recorded.tokens.end()};
}

ExpertSplit RecordedSplits::split(int64_t step, int32_t layer, int64_t group,
                                  std::span<const double> tokens) const {
  const auto found = splits_.find({step, layer});
  const int64_t count = found == splits_.end() ? 0 : std::ssize(found->second);
  if (group >= count) throw missing(step, layer, count);
  const RecordedSplit& recorded = found->second[static_cast<size_t>(group)];
  ExpertSplit split;
  split.reasons = recorded.reasons;
  split.divided = recorded.divided;
  for (size_t e = 0; e < tokens.size(); ++e) {
    const auto here = static_cast<int64_t>(tokens[e]);
    if (recorded.tokens[e] != here) {
      throw input_error(at_line(recorded.line) + "expert " + std::to_string(e) + " of layer " +
                        std::to_string(layer) + " had " + std::to_string(recorded.tokens[e]) +
                        " tokens in step " + std::to_string(step) + ", in this run it has " +
                        std::to_string(here) + ": it is the journal of another run");
    }
    if (here == 0) continue;
    const auto expert = static_cast<int32_t>(e);
    (recorded.on_device[e] != 0 ? split.device : split.host).push_back(expert);
  }
  return split;
}

}  // namespace hearth
