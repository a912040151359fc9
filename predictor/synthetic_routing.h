// Routing without a model: how many tokens choose each expert, in each layer of each step, with a
// given skew and a given persistence.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace hearth {

struct RoutingRequest {
  int64_t experts = 0;
  int64_t top_k = 1;   // 1 to experts
  double skew = 0;     // G of first choices, 1/experts to 1
  int64_t tokens = 0;  // of a step
  int64_t layers = 1;
  int64_t steps = 1;
  double persistence = 1;  // 0 to 1 (predictor/persistence.h)
  uint64_t seed = 0;
  std::optional<double> token_hit = {};  // of the predictor, 0 to 1; none: no predictor
};

class SyntheticRouting {
 public:
  /// A pure function of the request.
  explicit SyntheticRouting(const RoutingRequest& request);

  const RoutingRequest& request() const { return request_; }
  /// Tokens by expert: first choices, all choices, first choices as the predictor has them (empty
  /// without one).
  std::span<const int64_t> first(int64_t step, int64_t layer) const;
  std::span<const int64_t> all(int64_t step, int64_t layer) const;
  std::span<const int64_t> predicted(int64_t step, int64_t layer) const;

  // Measured on the counts, and averaged over steps and layers.
  double first_skew() const;
  double all_skew() const;  // at most 1/top_k
  /// None with one step.
  std::optional<double> persistence() const;
  /// Of the predictor: choices foretold right; the share of the least quarter of experts that it has
  /// among the least three eighths. None without a predictor.
  std::optional<double> token_hit() const;
  std::optional<double> foretold_least() const;

 private:
  using Counts = std::vector<int64_t>;  // [steps, layers, experts]
  std::span<const int64_t> row(const Counts& counts, int64_t step, int64_t layer) const;
  double mean_skew(const Counts& counts) const;

  RoutingRequest request_;
  Counts first_, all_, predicted_;
  int64_t hits_ = 0;
};

}  // namespace hearth
