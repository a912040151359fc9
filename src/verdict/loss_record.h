// Losses and gradient norms of a run's first and last steps, for the verdict.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/json.h"

namespace hearth {

/// Shows whether a run diverged: its last losses are far above the first, or its gradient vanished.
/// One step's loss depends on its rows, so the record compares means over a tenth of the steps, at
/// most 10 at either end. It counts the steps that changed weights.
class LossRecord {
 public:
  void add(double loss, double grad_norm);

  int64_t steps() const { return steps_; }
  int64_t without_gradient() const { return without_gradient_; }
  /// Means of the losses at the start and at the end; 0 without steps.
  double first() const;
  double last() const;

  /// Whether the gradient norm was 0 in at least half of the steps.
  bool mostly_without_gradient() const { return steps_ > 0 && 2 * without_gradient_ >= steps_; }
  /// Whether the last losses are at least twice the first, and 1 nat per token above them: e times
  /// the perplexity. Differences between rows are smaller than that.
  bool rose_far() const { return last() >= 2 * first() && last() >= first() + 1; }

  /// Member "losses" in the manifest of saved state.
  Json to_json() const;
  /// Restores the record of a saved state; nullptr (an older version's state): starts afresh. Storage
  /// error that names `source` if it is malformed.
  void restore(const Json* saved, const std::string& source);

 private:
  int64_t width() const;  // steps in a mean

  int64_t steps_ = 0, without_gradient_ = 0;
  std::vector<double> first_, last_;  // at most 10 losses each, in the order of the steps
};

}  // namespace hearth
