// Decides which lines of metrics.jsonl count, because a resumed run writes repeated steps again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace hearth {

/// Among lines of the same step, the last one counts. First call `add` for every line in order,
/// then `settle`, then `counts` for every line in the same order. Memory grows with the number of
/// resumes, not of lines.
class RepeatedSteps {
 public:
  void add(int64_t step);
  /// Call between the two walks.
  void settle();
  bool counts(int64_t step);

 private:
  struct Steps {
    int64_t first, last;
  };
  std::vector<Steps> runs_;      // runs of lines with consecutive steps
  std::vector<Steps> counting_;  // parts of runs_ that count, in line order
  std::vector<size_t> begin_;    // first part of each run in counting_, and the end
  size_t run_ = 0, part_ = 0;    // position of the second walk
  int64_t step_ = 0;             // its last step
  bool begun_ = false;
};

}  // namespace hearth
