// A quantity over the steps of a run, of bounded size for any number of steps.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

namespace hearth {

/// Divides steps first..last into equal buckets; one bucket per step if there are few.
struct StepAxis {
  int64_t first = 0;
  int64_t last = -1;  // below first: no steps
  int64_t buckets = 0;

  StepAxis() = default;
  /// At most `most` buckets. Steps lie below 10^8, so products with a number of buckets fit.
  StepAxis(int64_t first_step, int64_t last_step, int64_t most);

  int64_t bucket_of(int64_t step) const { return (step - first) * buckets / (last - first + 1); }
  /// The first step of a bucket; for `buckets`, the step after the last.
  int64_t begin_of(int64_t bucket) const;
  /// The middle of the steps of a bucket.
  double middle_of(int64_t bucket) const {
    return 0.5 * static_cast<double>(begin_of(bucket) + begin_of(bucket + 1) - 1);
  }
};

/// Summary of all values in a bucket. Minimum and maximum keep a spike of one step visible.
struct Bucket {
  double min = std::numeric_limits<double>::infinity();
  double max = -std::numeric_limits<double>::infinity();
  double sum = 0;
  int64_t count = 0;

  double mean() const { return sum / static_cast<double>(count); }
};

struct Series {
  StepAxis axis;
  std::vector<Bucket> buckets;
  Bucket all;

  Series() = default;
  explicit Series(const StepAxis& steps);
  /// Ignores non-finite values, which leaves a gap.
  void add(int64_t step, double value);
  bool empty() const { return all.count == 0; }
};

}  // namespace hearth
