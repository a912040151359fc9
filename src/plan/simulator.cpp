#include "plan/simulator.h"

#include <algorithm>
#include <utility>

#include "plan/kind_costs.h"

namespace hearth {

namespace {

std::vector<std::vector<TaskId>> order_of_schedule(const Schedule& s) {
  std::vector<std::vector<TaskId>> streams(s.streams.size());
  for (size_t t = 0; t < s.tasks.size(); ++t) {
    streams[static_cast<size_t>(s.tasks[t].stream)].push_back(static_cast<TaskId>(t));
  }
  return streams;
}

}  // namespace

Simulator::Simulator(const Schedule& schedule, std::span<const LinkRates> links,
                     std::vector<std::vector<TaskId>> orders, LoadSimulation* loads)
    : schedule_(schedule),
      orders_(orders.empty() ? order_of_schedule(schedule) : std::move(orders)),
      loads_(loads),
      idle_(schedule) {
  add_turns();
  if (const std::vector<int32_t> circle = events_->deadlock(); !circle.empty()) {
    std::string names;
    for (const int32_t number : circle) {
      const TaskId task = turns_[static_cast<size_t>(number)].task;
      names +=
          (names.empty() ? "" : ", then ") + describe(schedule.tasks[static_cast<size_t>(task)]);
    }
    HEARTH_CHECK(circle.empty(), "simulator: tasks wait for each other: " + names);
  }
  add_links(links);
}

void Simulator::add_turns() {
  std::vector<std::vector<int32_t>> after = dependencies(schedule_), streams;
  for (TaskId t = 0; t < std::ssize(schedule_.tasks); ++t) {
    const int32_t count = loads_ == nullptr ? 1 : loads_->turns(t);
    turns_.push_back({t, count - 1, true});
  }
  for (const std::vector<TaskId>& order : orders_) {
    std::vector<int32_t>& stream = streams.emplace_back();
    for (const TaskId task : order) {
      const int32_t last = turns_[static_cast<size_t>(task)].turn;
      for (int32_t turn = 0; turn < last; ++turn) {
        stream.push_back(static_cast<int32_t>(turns_.size()));
        turns_.push_back({task, turn, false});
      }
      stream.push_back(task);
    }
  }
  after.resize(turns_.size());
  first_turn_.resize(schedule_.tasks.size());
  for (size_t number = 0; number < turns_.size(); ++number) {
    if (turns_[number].turn > 0) continue;
    const auto task = static_cast<size_t>(turns_[number].task);
    first_turn_[task] = static_cast<int32_t>(number);
    if (number != task)
      after[number] = std::move(after[task]);  // the first turn waits for the task
  }
  events_.emplace(std::move(streams), std::move(after));
}

/// The resources of copies, and behind them all links between ranks.
void Simulator::add_links(std::span<const LinkRates> links) {
  const CopyLinks copies(schedule_, links);
  rates_ = copies.rates();
  const auto between_ranks = static_cast<int32_t>(rates_.size());
  rates_.push_back(1);
  passes_.resize(turns_.size());
  for (size_t t = 0; t < schedule_.tasks.size(); ++t) {
    const Task& task = schedule_.tasks[t];
    if (kind_costs(task.kind).talks) passes_[t].through[0] = between_ranks;
    if (task.kind == TaskKind::copy) passes_[t] = copies.of_route(copy_route(schedule_, task));
  }
  for (size_t place = 0; place < schedule_.places.size(); ++place) {
    const auto device = static_cast<Place>(place);
    device_links_.push_back({copies.to_device(device), copies.from_device(device)});
  }
}

/// By number in the simulation. Empty: none can be.
std::vector<uint8_t> Simulator::idle_turns(const RoutedStep* routed) const {
  std::vector<uint8_t> idle;
  if (!schedule_.decides) return idle;
  for (const LoadSimulation::SimulatedTurn& turn : turns_) {
    const TaskId decision = idle_.decision(turn.task);
    const RoutedStep::Decision* const made =
        decision < 0 || routed == nullptr ? nullptr : routed->decision(decision);
    const bool is_idle =
        decision >= 0 && (made == nullptr ? idle_.expected(decision) : made->host_is_idle);
    idle.push_back(is_idle ? 1 : 0);
  }
  return idle;
}

SimulatedStep Simulator::run(std::span<const TaskDemand> demands, const RoutedStep* routed) const {
  HEARTH_CHECK(demands.size() == schedule_.tasks.size(), "simulator: a demand for each task");
  std::vector<TaskLoad> loads = passes_;
  for (size_t n = 0; n < loads.size(); ++n) {
    const auto task = static_cast<size_t>(turns_[n].task);
    const double share = loads_ == nullptr ? 1 : loads_->share(turns_[n].task, turns_[n].turn);
    loads[n].seconds = demands[task].seconds * share;
    const bool talks = kind_costs(schedule_.tasks[task].kind).talks;
    loads[n].amount = talks ? demands[task].between_s : demands[task].bytes;
  }
  if (loads_ != nullptr) loads_->begin_step(turns_, device_links_, loads, routed);
  const std::vector<uint8_t> idle = idle_turns(routed);
  const EventTimes times = events_->run(loads, rates_, loads_, idle);

  SimulatedStep step;
  step.time_s = times.last;
  step.trace.reserve(schedule_.tasks.size());
  const auto at = [](int32_t number) { return static_cast<size_t>(number); };
  // What turns wait after the first is waiting within their task.
  std::vector<double> worked(schedule_.tasks.size());
  for (size_t n = 0; n < turns_.size(); ++n) {
    worked[at(turns_[n].task)] += times.end[n] - times.begin[n];
  }
  for (const int32_t number : times.order) {
    if (turns_[at(number)].turn > 0) continue;
    const TaskId id = turns_[at(number)].task;
    const double begin = times.begin[at(number)], end = times.end[at(id)];
    const bool is_idle = !idle.empty() && idle[at(id)] != 0;
    const auto bytes = is_idle ? 0 : static_cast<uint64_t>(demands[at(id)].bytes);
    step.trace.push_back({id, begin, end, bytes, 0, std::max(0.0, end - begin - worked[at(id)])});
  }
  if (loads_ != nullptr) step.copies = loads_->copies();

  for (const std::vector<TaskId>& order : orders_) {
    double ended = 0, stall = 0;
    for (const TaskId id : order) {
      const double end = times.end[at(id)];
      stall += end - ended - worked[at(id)];
      ended = end;
    }
    step.stall_s.push_back(stall);
  }
  return step;
}

}  // namespace hearth
