// How many tokens will choose each expert of a device's layers: what is known before their routers
// have run, from the step before and from earlier groups of this step. Popularity of the step before
// is APTMoE's historical predictor (III-C 1); real counts of groups that have passed join it (III-C 3).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "plan/decisions/foresight.h"
#include "predictor/history.h"
#include "predictor/prediction_score.h"

namespace hearth {

/// Layers are counted among those of the device, from 0. Tokens are choices: K of each token.
class TokenForesight {
 public:
  /// `groups`: of micro-batches, that a step divides each layer for.
  TokenForesight(int64_t layers, int64_t experts, int64_t top_k, int64_t groups);

  /// Of the next group of a layer, by expert; empty: nothing is known.
  std::vector<double> next(size_t layer) const;
  /// Real tokens of a group, [E]; `foretold`: what decisions took them for, or empty. `loads`: experts
  /// that were to be loaded for it. `used`: experts that the device computes. `by`: what foretold them;
  /// the choices that models of routers foretold are scored elsewhere (RouterForesight).
  void counted(size_t layer, std::span<const double> tokens, std::span<const double> foretold,
               std::span<const int32_t> loads, std::span<const int32_t> used,
               ForetoldBy by = ForetoldBy::history);

  /// The counts of the step are those of the step before from now on.
  void end_step();
  /// As if the step had not begun.
  void forget_step();
  /// Since the step began; bytes are counted in experts.
  const PredictionScore& score() const { return score_; }

  /// Of the step before, by expert; all 0 before the first.
  std::span<const double> history(size_t layer) const {
    return history_.popularity(static_cast<int32_t>(layer));
  }
  void set_history(size_t layer, std::span<const double> tokens);

 private:
  const int64_t groups_;
  PopularityHistory history_;
  std::vector<int64_t> groups_counted_;  // by layer, in this step
  PredictionScore score_;
};

}  // namespace hearth
