// The updates whose gradients a run has not looked at yet.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "train/session.h"
#include "verdict/gradient_record.h"

namespace hearth {

/// Notes which tensors got a gradient, once a step's updates are made: at its end, or, if the schedule
/// rotates, at the end of the next step or of a drain.
class UnseenUpdates {
 public:
  /// `record` must outlive the object.
  explicit UnseenUpdates(GradientRecord& record) : record_(record) {}

  /// Call after each step or drain, before `add`: the updates that were due are made.
  void look(const ParameterTable& table) {
    if (tokens_) record_.look(table, *std::exchange(tokens_, {}));
  }
  /// Call after a step that changes weights, now or when its updates are made. `expert_tokens` are
  /// those of its result.
  void add(const Session& session, std::vector<std::vector<double>> expert_tokens) {
    tokens_ = std::move(expert_tokens);
    if (!session.updates_are_due()) look(session.table());
  }

 private:
  GradientRecord& record_;
  std::optional<std::vector<std::vector<double>>> tokens_;  // none: nothing is unseen
};

}  // namespace hearth
