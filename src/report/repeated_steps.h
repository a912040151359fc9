// Which lines of metrics.jsonl count: steps that a resumed run repeats stand there again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace hearth {

/// Of the lines with the same step the last one counts. Takes all steps in the order of the lines
/// first (`add`), then tells for them in the same order whether they count (`counts`). Memory grows
/// with the number of resumes, not with the number of lines.
class RepeatedSteps {
 public:
  void add(int64_t step);
  /// Between the two walks.
  void settle();
  bool counts(int64_t step);

 private:
  struct Steps {
    int64_t first, last;
  };
  std::vector<Steps> runs_;      // of lines whose steps follow one another
  std::vector<Steps> counting_;  // parts of them that count, in the order of the lines
  std::vector<size_t> begin_;    // of the parts of each run in counting_; one more at the end
  size_t run_ = 0, part_ = 0;    // of the second walk
  int64_t step_ = 0;             // the last one of it
  bool begun_ = false;
};

}  // namespace hearth
