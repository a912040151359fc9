// The shared expert of a layer: the mean of its experts, to which residuals are taken (HybridEP,
// section IV-B). The same bits on all ranks, whichever rank owns which expert.
//
// Sums of floats depend on their order, which depends on owners. So experts are added in fixed point,
// in units of 2^-22 (2.4e-7): sums of whole numbers have no order. Weights beyond
// (2^31 - 1) / E units are cut to that for the mean, and NaN counts as 0. Both only make residuals
// larger. The mean is a predictor: nothing trains it, and its rounding changes no weight that is sent.
#pragma once

#include <cstdint>
#include <span>

#include "base/dtype.h"

namespace hearth {

/// Adds weights of one of `experts` experts to a sum in fixed point. Equal sizes.
void add_expert(std::span<const float> weights, int64_t experts, std::span<int32_t> sum);
/// Adds another rank's part of a sum.
void add_sums(std::span<const int32_t> part, std::span<int32_t> sum);
/// The mean of so many experts, rounded to the type on the wire (f32 or bf16). Equal sizes.
void mean_of(std::span<const int32_t> sum, int64_t experts, DType wire, std::span<float> mean);

}  // namespace hearth
