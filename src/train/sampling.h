// Chooses the next token from logits.
#pragma once

#include <cstdint>
#include <span>

namespace hearth {

/// How the next token is drawn. The defaults restrict nothing; temperature 0 is greedy.
struct Sampling {
  double temperature = 0;
  int64_t top_k = 0;  // the likeliest tokens, and ties with the last of them; 0: all
  double top_p = 1;   // then the smallest set of likeliest tokens with this total probability
  double min_p = 0;   // then the tokens with this share of the largest probability
};

/// Divides the logits of the tokens that `seen` names by `penalty` if they are positive, else
/// multiplies them: the repetition penalty of CTRL (Keskar et al. 2019), as transformers applies it.
/// A token that comes several times counts once. `logits` are [vocabulary]; ids are within it.
void penalize_repetition(std::span<float> logits, std::span<const int32_t> seen, double penalty);

/// Temperature 0: the token with the largest logit, the lowest id on ties. Else draws from
/// softmax(logits / temperature), restricted by top_k, top_p and min_p in this order, as transformers
/// does. `uniform` in [0, 1) decides the draw.
int32_t next_token(std::span<const float> logits, const Sampling& sampling, double uniform);

}  // namespace hearth
