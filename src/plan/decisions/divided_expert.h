// Which expert of a layer the host and the device compute together, each a range of its width, so that
// both end early.
#pragma once

#include <span>
#include <vector>

#include "plan/decisions/split_model.h"

namespace hearth {

/// Ranges begin at multiples of so many columns: of tiles of the kernels, or, of narrow experts, of what
/// dropout draws at a time.
int64_t divided_columns(int64_t width);

struct ExpertDivision {
  DividedExpert divided;
  std::vector<uint8_t> on_device;  // by expert; 0 of the divided one
  double seconds = 0;              // of all passes
};

/// The best division of one expert, beside the split `on_device` or one that differs from it by this
/// expert alone. None, unless it takes at least a hundredth less than the split without.
ExpertDivision best_division(const SplitModel& model, std::span<const uint8_t> on_device);

}  // namespace hearth
