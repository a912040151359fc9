// The next token from logits.
#pragma once

#include <cstdint>
#include <span>

namespace hearth {

/// Greedy (temperature 0: the largest, the lowest id on ties), or drawn from softmax(logits /
/// temperature) cut to the smallest set of likeliest tokens with probability `top_p` together.
/// `uniform` in [0, 1) decides the draw.
int32_t next_token(std::span<const float> logits, double temperature, double top_p, double uniform);

}  // namespace hearth
