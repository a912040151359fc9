// How the tokens of a step are routed, and which places compute their experts. All of it is known before
// the step is simulated: a rule of splits reads counts and cost tables, and no clock
// (plan/decisions/split_decider.h).
#pragma once

#include <functional>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "layers/split.h"
#include "plan/schedule.h"

namespace hearth {

/// Choices by expert, [E], of a layer in a micro-batch.
using ChoicesOf = std::function<std::span<const int64_t>(int32_t layer, int32_t micro_batch)>;

class RoutedStep {
 public:
  /// The experts that a task will probably have.
  struct Foretold {
    TaskId task = 0;  // of experts, at a device
    std::vector<BlockId> experts;
  };
  /// What is known when a `decide` task has ended.
  struct Decision {
    std::vector<Foretold>
        made;  // the tasks of its rows in forward, with the experts that they have
    std::vector<Foretold> foretold;  // of later layers, for the same rows
    bool host_is_idle = false;       // the split gives the host no token
  };

  /// If the schedule decides, asks the rule for all splits of the step, in the order of the schedule. The
  /// rule's step must have begun. Else experts are computed where they live, and the rule may be null.
  /// Schedule and table must outlive the object.
  RoutedStep(const Schedule& schedule, const ParameterTable& table, int64_t experts,
             SplitRule* rule, const ChoicesOf& choices);

  /// Before the first task.
  std::span<const Foretold> foretold() const { return foretold_; }
  /// Null: the task decides nothing.
  const Decision* decision(TaskId task) const;
  /// The experts of a task of experts that have tokens, in the order of computing; and the choices of each
  /// of them, of all micro-batches of the task together.
  struct OfTask {
    std::vector<BlockId> experts;
    std::vector<int64_t> choices;
    /// Of the last of them, the share of its width that the task computes.
    double last_share = 1;
  };
  OfTask of_task(TaskId task) const;
  /// The expert of the task's layer that the host and the device compute, if there is one: the share of its
  /// width that the device computes, and its choices in the task's micro-batches.
  struct Divided {
    double share = 0;
    int64_t choices = 0;
  };
  Divided divided(const Task& task) const;
  /// The share of a layer's choices whose experts are at a place, of the task's micro-batches.
  double share(const Task& task) const;

 private:
  struct Split {
    std::vector<Place> places;   // by expert
    std::vector<int32_t> order;  // every expert, in the order of computing; the divided one is last
    DividedExpert divided;
    std::vector<std::vector<int64_t>> choices;  // by micro-batch of the group: by expert
    RowRange rows;
    int32_t layer = -1;
  };
  void ask(SplitRule& rule, int64_t experts, const ChoicesOf& choices);
  void add_homes(int64_t experts, const ChoicesOf& choices);
  const Split& split_of(int32_t layer, RowRange rows) const;
  std::vector<Foretold> tasks_of(const ForetoldExperts& experts, const RowRange* rows) const;

  double device_share(const Split& split) const;
  bool has_tokens(const Split& split, Place place) const;

  const Schedule& schedule_;
  const ParameterTable& table_;
  std::map<std::pair<int32_t, int32_t>, Split> splits_;  // by layer and first micro-batch
  std::map<int32_t, std::vector<TaskId>> forward_;       // by layer: its tasks at devices
  std::vector<Foretold> foretold_;
  std::map<TaskId, Decision> decisions_;
};

}  // namespace hearth
