// The verdict on a run (docs/verdict.md): whether what was to be trained was trained and nothing else,
// and whether the run went as planned. One word and its reasons.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "verdict/routing.h"
#include "verdict/weight_change.h"

namespace hearth {

/// What is known of a run at its end. Counts are of the whole run, also of one that was resumed;
/// memory and time are of the process that ended it.
struct RunFacts {
  const ParameterTable& table;
  const Routing& routing;
  int64_t experts_per_token = 0;
  FrozenContent frozen_at_start = {}, frozen_at_end = {};
  std::vector<TensorChange> changes = {};
  std::string failure = {};  // why `changes` are not known
  int64_t steps = 0, skipped = 0;
  bool rate_was_zero = false;  // the learning rate, in every step
  int64_t tokens = 0, trained_tokens = 0;
  std::string device = {};  // that computed the experts; empty: the CPU
  std::optional<double> loss_before = {}, loss_after = {};  // of evaluations; NaN: not finite
  uint64_t planned_bytes = 0, measured_bytes = 0;           // peaks of memory
  double predicted_s = 0;                                   // a step
  std::optional<double> measured_s = {};                    // none: no step in this process
};

struct Verdict {
  std::vector<std::string> alarms;  // none: ok
  std::vector<std::string> lines;   // what was found, for people
  Json json;                        // the fields of the journal's event

  /// "ok", or "alarm: REASON; REASON".
  std::string text() const;
};
Verdict judge(const RunFacts& facts);

}  // namespace hearth
