// Chooses the next token from logits.
#pragma once

#include <cstdint>
#include <span>

namespace hearth {

/// Temperature 0: the token with the largest logit, the lowest id on ties. Else draws from
/// softmax(logits / temperature), restricted to the smallest set of likeliest tokens with total
/// probability >= `top_p`. `uniform` in [0, 1) decides the draw.
int32_t next_token(std::span<const float> logits, double temperature, double top_p, double uniform);

}  // namespace hearth
