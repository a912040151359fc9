#include "layers/router_sample.h"

namespace hearth {

namespace {

/// With room for rows_apart, so that the next micro-batch begins with a row.
Port sample_port(const TaskShape& s, Value value, Access access, int64_t cols) {
  return {.value = value,
          .access = access,
          .dtype = DType::f32,
          .extra_rows = rows_apart(sampled_tokens(s.tokens).count),
          .cols = cols};
}

}  // namespace

Port layer_sample_port(const TaskShape& s, Access access) {
  return sample_port(s, Value::sampled_residual, access, s.spec.hidden);
}

void add_router_sample_ports(const TaskShape& s, Access access, std::vector<Port>& list) {
  if (s.samples == SampledRows::router) {
    list.push_back(sample_port(s, Value::sampled_normed, access, s.spec.hidden));
  }
  list.push_back(sample_port(s, Value::sampled_probs, access, s.spec.experts));
}

void take_sample(const BodyContext& c, ConstView from, View to) {
  const SampledTokens of = sampled_tokens(from.rows);
  const ConstView rows(from.data, from.dtype, of.count, from.cols, from.stride * of.stride);
  c.ops.cast(c.stream, rows, to.slice(0, of.count));
}

int64_t tokens_of_segment(const BodyContext& c, int64_t segment) {
  return (c.batches.empty() ? c.batch : c.batches[static_cast<size_t>(segment)]).tokens;
}

std::span<const float> sampled_rows(const BodyContext& c, Value value, int64_t segment) {
  const ConstView of = c.in(value);
  const float* const first = of.as<float>() + segment * c.stride(value) * of.cols;
  const int64_t rows = sampled_tokens(tokens_of_segment(c, segment)).count;
  return std::span(first, static_cast<size_t>(rows * of.cols));
}

}  // namespace hearth
