// The mathematics of a predictor with the shape of a router: logits = W x, W [E, H], trained with the
// cross-entropy to another router's softmax. The same code runs in f32 and, for gradient checks, f64.
//
// Every sum has a fixed order, and lanes instead of the compiler's choice, so that results depend
// neither on instruction sets nor on who calls for which rows.
#pragma once

#include <cstdint>
#include <span>

namespace hearth {

/// logits [E] of a row [H]; weight [E, H].
template <class T>
void soft_logits(std::span<const T> weight, std::span<const T> row, std::span<T> logits);

/// Returns -sum of target log(softmax(logits)). d_logits = scale * (softmax(logits) - target), the
/// gradient of scale times that, if the target adds up to 1. d_logits may be logits.
template <class T>
double soft_cross_entropy(std::span<const T> logits, std::span<const T> target, T scale,
                          std::span<T> d_logits);

/// gradient [H] of one expert's row of W: the sum over tokens t, in order, of d_logits[t, expert]
/// times row t. d_logits [T, E], rows [T, H]. Overwritten.
template <class T>
void soft_gradient(std::span<const T> d_logits, std::span<const T> rows, int64_t experts,
                   int64_t expert, std::span<T> gradient);

/// The experts with the largest logits, the largest first, the lower number on ties; `choices` says
/// how many. A logit that is no number comes last.
void choose_experts(std::span<const float> logits, std::span<int32_t> choices);

/// row / sqrt(mean(row^2) + eps).
void divide_by_rms(std::span<const float> row, double eps, std::span<float> normed);

}  // namespace hearth
