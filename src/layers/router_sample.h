// A sample of the tokens of a micro-batch, for predictors of the routers behind a layer: what its
// router read, and what it said. It crosses the link to the host, so it is small.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "layers/body.h"

namespace hearth {

/// The most tokens of a sample.
inline constexpr int64_t kSampledTokens = 256;

/// Tokens 0, stride, 2 * stride and so on.
struct SampledTokens {
  int64_t count = 0, stride = 1;
};
inline SampledTokens sampled_tokens(int64_t tokens) {
  return {std::min(tokens, kSampledTokens), std::max<int64_t>(1, tokens / kSampledTokens)};
}

/// The ports of the values `sampled_normed` and `sampled_probs`.
void add_sample_ports(const TaskShape& s, Access access, std::vector<Port>& list);

}  // namespace hearth
