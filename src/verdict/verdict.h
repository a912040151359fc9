// The verdict on a run (docs/verdict.md): did it train exactly what was asked, and go as planned?
// Either "ok" or "alarm" with reasons.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "verdict/loss_record.h"
#include "verdict/routing.h"
#include "verdict/weight_change.h"

namespace hearth {

/// Facts about a run at its end. Counts cover the whole run, resumed parts included. Memory and
/// time cover only the process that ended it.
struct RunFacts {
  const ParameterTable& table;
  const Routing& routing;
  int64_t experts_per_token = 0;
  FrozenContent frozen_at_start = {}, frozen_at_end = {};
  std::vector<TensorChange> changes = {};
  std::string failure = {};  // why `changes` is unknown
  int64_t steps = 0, skipped = 0;
  LossRecord losses = {};      // of training
  bool rate_was_zero = false;  // the learning rate was 0 in every step
  int64_t tokens = 0, trained_tokens = 0;
  std::vector<std::string> experts_at = {"cpu"};  // the places of experts: devices, or "cpu"
  bool experts_apart = false;                     // the rest of the model ran at another place
  std::optional<double> loss_before = {}, loss_after = {};  // evaluation losses; NaN: not finite
  std::optional<int64_t> result_step = {};                  // of the result, if not the last step
  uint64_t planned_bytes = 0, measured_bytes = 0;           // peak memory
  double predicted_s = 0;                                   // per step
  std::optional<double> measured_s = {};                    // none: this process ran no step
};

struct Verdict {
  std::vector<std::string> alarms;  // empty: ok
  std::vector<std::string> lines;   // findings, for people
  Json json;                        // fields of the journal's event

  /// "ok", or "alarm: REASON; REASON".
  std::string text() const;
};
Verdict judge(const RunFacts& facts);

}  // namespace hearth
