#include "runtime/task_inputs.h"

#include <algorithm>
#include <cstring>

namespace hearth {
namespace {

/// Where the rows of tokens are that are sorted by expert (RoutingView).
struct Routed {
  std::vector<int32_t> offsets, source, row_of;

  /// Choice i goes to expert i % experts, as int_input() has it.
  Routed(int64_t tokens, int64_t experts, int64_t k)
      : offsets(static_cast<size_t>(experts) + 1),
        source(static_cast<size_t>(tokens * k)),
        row_of(source.size()) {
    for (int64_t i = 0; i < tokens * k; ++i) ++offsets[static_cast<size_t>(i % experts) + 1];
    for (size_t e = 1; e < offsets.size(); ++e) offsets[e] += offsets[e - 1];
    std::vector<int32_t> next(offsets.begin(), offsets.end() - 1);
    for (int64_t i = 0; i < tokens * k; ++i) {
      const int32_t row = next[static_cast<size_t>(i % experts)]++;
      source[static_cast<size_t>(row)] = static_cast<int32_t>(i);  // choice i % k of token i / k
      row_of[static_cast<size_t>(i)] = row;
    }
  }
};

template <class F>
std::vector<int32_t> ints(int64_t count, const F& value) {
  std::vector<int32_t> result(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) {
    result[static_cast<size_t>(i)] = static_cast<int32_t>(value(i));
  }
  return result;
}

std::vector<int32_t> int_input(const Port& port, const ModelSpec& spec, int64_t tokens,
                               int64_t longest) {
  const int64_t rows = port.rows(tokens) * port.cols;
  switch (port.value) {
    case Value::ids:
    case Value::labels: return ints(rows, [&](int64_t i) { return i % spec.vocabulary; });
    case Value::positions: return ints(rows, [&](int64_t i) { return i % longest; });
    case Value::query_offsets:
    case Value::key_offsets:
      return ints(rows, [&](int64_t i) { return std::min(i * longest, tokens); });
    case Value::choice: return ints(rows, [&](int64_t i) { return i % spec.experts; });
    case Value::route_offsets: return Routed(tokens, spec.experts, spec.experts_per_token).offsets;
    case Value::route_source: return Routed(tokens, spec.experts, spec.experts_per_token).source;
    case Value::route_row_of: return Routed(tokens, spec.experts, spec.experts_per_token).row_of;
    default: return ints(rows, [](int64_t) { return 0; });
  }
}

double f64_input(Value value, const ModelSpec& spec, int64_t tokens) {
  const auto count = static_cast<double>(tokens);
  switch (value) {
    case Value::trained_tokens:
    case Value::tokens:
    case Value::micro_tokens:
    case Value::micro_trained_tokens: return count;
    case Value::lr: return 1e-6;
    case Value::router_counts:
      return count * static_cast<double>(spec.experts_per_token) /
             static_cast<double>(spec.experts);
    case Value::router_prob_sums: return count / static_cast<double>(spec.experts);
    default: return 1;  // update_step, clip, finite, dropout_key
  }
}

template <class T>
std::vector<std::byte> bytes_of(const std::vector<T>& values) {
  std::vector<std::byte> result(values.size() * sizeof(T));
  if (!values.empty()) std::memcpy(result.data(), values.data(), result.size());
  return result;
}

}  // namespace

int64_t sequences_of(int64_t tokens, int64_t longest) { return (tokens + longest - 1) / longest; }

std::vector<std::byte> task_input(const Port& port, const ModelSpec& spec, int64_t tokens,
                                  int64_t longest) {
  if (port.dtype == DType::i32) return bytes_of(int_input(port, spec, tokens, longest));
  if (port.dtype != DType::f64) return {};
  const auto count = static_cast<size_t>(port.rows(tokens) * port.cols);
  return bytes_of(std::vector<double>(count, f64_input(port.value, spec, tokens)));
}

}  // namespace hearth
