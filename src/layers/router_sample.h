// A sample of the tokens of a micro-batch, for predictors of routers: what entered a layer, what its
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

/// The port of the value `sampled_residual`.
Port layer_sample_port(const TaskShape& s, Access access);
/// The ports of `sampled_probs` and, with SampledRows::router, `sampled_normed`.
void add_router_sample_ports(const TaskShape& s, Access access, std::vector<Port>& list);

/// Copies the rows of the sampled tokens.
void take_sample(const BodyContext& c, ConstView from, View to);
/// The sampled rows of a micro-batch of the task, from a value on the host.
std::span<const float> sampled_rows(const BodyContext& c, Value value, int64_t segment);
/// Tokens of a micro-batch of the task.
int64_t tokens_of_segment(const BodyContext& c, int64_t segment);

}  // namespace hearth
