#include "plan/routed_step.h"

#include <algorithm>

#include "base/error.h"

namespace hearth {

namespace {

/// Whether the decision of a layer may divide an expert along its width.
bool divides(const Task& decision) {
  return std::ranges::any_of(decision.uses,
                             [](const BufferUse& use) { return use.port.value == Value::divided; });
}

bool is_within(const RowRange& rows, const RowRange& of) {
  return of.begin <= rows.begin && rows.end <= of.end;
}

}  // namespace

RoutedStep::RoutedStep(const Schedule& schedule, const ParameterTable& table, int64_t experts,
                       SplitRule* rule, const ChoicesOf& choices)
    : schedule_(schedule), table_(table) {
  if (!schedule.decides) {
    add_homes(experts, choices);
    return;
  }
  HEARTH_CHECK(rule != nullptr, "routed step: no rule that divides experts");
  ask(*rule, experts, choices);
}

void RoutedStep::add_homes(int64_t experts, const ChoicesOf& choices) {
  const auto micro_batches = static_cast<int32_t>(schedule_.micro_batches);
  for (const Task& task : schedule_.tasks) {
    if (task.kind != TaskKind::experts || splits_.contains({task.layer, 0})) continue;
    Split& split = splits_[{task.layer, 0}];
    split.rows = {0, micro_batches};
    const BlockId first = table_.find_block(BlockKind::expert, task.layer, 0);
    for (int64_t e = 0; e < experts; ++e) {
      split.places.push_back(table_.block(first + static_cast<BlockId>(e)).place);
      split.order.push_back(static_cast<int32_t>(e));
    }
    for (int32_t m = 0; m < micro_batches; ++m) {
      const std::span<const int64_t> of = choices(task.layer, m);
      split.choices.emplace_back(of.begin(), of.end());
    }
  }
}

void RoutedStep::ask(SplitRule& rule, int64_t experts, const ChoicesOf& choices) {
  const auto count = std::ssize(schedule_.tasks);
  for (TaskId t = 0; t < count; ++t) {
    const Task& task = schedule_.tasks[static_cast<size_t>(t)];
    const bool at_device = schedule_.is_decided(task) && !schedule_.is_host(task.place);
    if (at_device && task.phase == Phase::forward) forward_[task.layer].push_back(t);
  }
  for (const ForetoldExperts& of : rule.foretold()) {
    std::ranges::move(tasks_of(of, nullptr), std::back_inserter(foretold_));
  }
  for (TaskId t = 0; t < count; ++t) {
    const Task& task = schedule_.tasks[static_cast<size_t>(t)];
    if (task.kind != TaskKind::decide) continue;
    Split& split = splits_[{task.layer, task.rows.begin}];
    split.rows = task.rows;
    split.layer = task.layer;
    std::vector<double> tokens;
    for (int32_t m = task.rows.begin; m < task.rows.end; ++m) {
      const std::span<const int64_t> of = choices(task.layer, m);
      split.choices.emplace_back(of.begin(), of.end());
      tokens.insert(tokens.end(), of.begin(), of.end());
    }
    split.places.resize(static_cast<size_t>(experts));
    rule.divide(task.layer, tokens, split.places);
    split.order = rule.order(task.layer);
    if (divides(task)) split.divided = rule.divided(task.layer);
    const int32_t divided = split.divided.expert;
    for (int32_t e = 0; e < experts; ++e) {
      const bool is_known = std::ranges::find(split.order, e) != split.order.end();
      if (!is_known && e != divided) split.order.push_back(e);
    }
    if (split.divided.any()) split.order.push_back(divided);
    Decision& decision = decisions_[t];
    decision.host_is_idle = !has_tokens(split, task.place);
    for (const TaskId of : forward_[task.layer]) {
      const Task& reads = schedule_.tasks[static_cast<size_t>(of)];
      if (is_within(reads.rows, task.rows)) decision.made.push_back({of, of_task(of).experts});
    }
    for (const ForetoldExperts& later : rule.foretold_behind(task.layer)) {
      std::ranges::move(tasks_of(later, &task.rows), std::back_inserter(decision.foretold));
    }
  }
}

std::vector<RoutedStep::Foretold> RoutedStep::tasks_of(const ForetoldExperts& experts,
                                                       const RowRange* rows) const {
  std::vector<Foretold> tasks;
  const auto of_layer = forward_.find(experts.layer);
  if (of_layer == forward_.end()) return tasks;
  std::vector<BlockId> blocks;
  const BlockId first = table_.find_block(BlockKind::expert, experts.layer, 0);
  for (const int32_t expert : experts.experts) blocks.push_back(first + expert);
  for (const TaskId task : of_layer->second) {
    const Task& of = schedule_.tasks[static_cast<size_t>(task)];
    if (rows == nullptr || is_within(of.rows, *rows)) tasks.push_back({task, blocks});
  }
  return tasks;
}

const RoutedStep::Decision* RoutedStep::decision(TaskId task) const {
  const auto found = decisions_.find(task);
  return found == decisions_.end() ? nullptr : &found->second;
}

const RoutedStep::Split& RoutedStep::split_of(int32_t layer, RowRange rows) const {
  auto found = splits_.upper_bound({layer, rows.begin});
  HEARTH_CHECK(found != splits_.begin(), "routed step: a task before its decision");
  --found;
  HEARTH_CHECK(found->first.first == layer && is_within(rows, found->second.rows),
               "routed step: a task without a decision");
  return found->second;
}

RoutedStep::OfTask RoutedStep::of_task(TaskId id) const {
  const Task& task = schedule_.tasks[static_cast<size_t>(id)];
  const Split& split = split_of(task.layer, task.rows);
  const BlockId first = table_.find_block(BlockKind::expert, task.layer, 0);
  OfTask of;
  for (const int32_t expert : split.order) {
    const auto e = static_cast<size_t>(expert);
    if (!task.part.all() && split.places[e] != task.part.place) continue;
    int64_t sum = 0;
    for (int32_t m = task.rows.begin; m < task.rows.end; ++m) {
      sum += split.choices[static_cast<size_t>(m - split.rows.begin)][e];
    }
    if (sum == 0) continue;
    of.experts.push_back(first + expert);
    of.choices.push_back(sum);
    if (expert == split.divided.expert) of.last_share = 1 - device_share(split);
  }
  return of;
}

double RoutedStep::device_share(const Split& split) const {
  if (!split.divided.any()) return 0;
  const Block& block = table_.block(table_.find_block(BlockKind::expert, split.layer, 0));
  for (TensorId id = block.begin; id < block.end; ++id) {
    const Tensor& tensor = table_.tensor(id);
    if (tensor.slot != Slot::gate) continue;
    return static_cast<double>(split.divided.width) / static_cast<double>(tensor.rows);
  }
  HEARTH_CHECK(false, "routed step: an expert without a gate");
  return 0;
}

RoutedStep::Divided RoutedStep::divided(const Task& task) const {
  const Split& split = split_of(task.layer, task.rows);
  if (!split.divided.any()) return {};
  Divided divided{device_share(split), 0};
  for (int32_t m = task.rows.begin; m < task.rows.end; ++m) {
    divided.choices += split.choices[static_cast<size_t>(m - split.rows.begin)]
                                    [static_cast<size_t>(split.divided.expert)];
  }
  return divided;
}

bool RoutedStep::has_tokens(const Split& split, Place place) const {
  for (size_t e = 0; e < split.places.size(); ++e) {
    if (split.places[e] != place) continue;
    if (std::ranges::any_of(split.choices, [e](const auto& of) { return of[e] > 0; })) return true;
  }
  return false;
}

double RoutedStep::share(const Task& task) const {
  const Split& split = split_of(task.layer, task.rows);
  double own = 0, all = 0;
  for (int32_t m = task.rows.begin; m < task.rows.end; ++m) {
    const std::vector<int64_t>& of = split.choices[static_cast<size_t>(m - split.rows.begin)];
    for (size_t e = 0; e < of.size(); ++e) {
      all += static_cast<double>(of[e]);
      if (split.places[e] == task.part.place) own += static_cast<double>(of[e]);
    }
  }
  return all > 0 ? own / all : 0;
}

}  // namespace hearth
