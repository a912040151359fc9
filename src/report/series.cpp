#include "report/series.h"

#include <algorithm>
#include <cmath>

namespace hearth {
namespace {

void put(Bucket& bucket, double value) {
  bucket.min = std::min(bucket.min, value);
  bucket.max = std::max(bucket.max, value);
  bucket.sum += value;
  ++bucket.count;
}

}  // namespace

StepAxis::StepAxis(int64_t first_step, int64_t last_step, int64_t most)
    : first(first_step), last(last_step), buckets(std::clamp<int64_t>(last - first + 1, 0, most)) {}

int64_t StepAxis::begin_of(int64_t bucket) const {
  // The least step s with s * buckets / steps == bucket.
  const int64_t steps = last - first + 1;
  return first + (bucket * steps + buckets - 1) / buckets;
}

Series::Series(const StepAxis& steps) : axis(steps), buckets(static_cast<size_t>(steps.buckets)) {}

void Series::add(int64_t step, double value) {
  if (!std::isfinite(value) || step < axis.first || step > axis.last) return;
  put(buckets[static_cast<size_t>(axis.bucket_of(step))], value);
  put(all, value);
}

}  // namespace hearth
