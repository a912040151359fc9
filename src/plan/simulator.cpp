#include "plan/simulator.h"

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "device/link.h"
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

const LinkRates* link_of(const Schedule& schedule, Place place, std::span<const LinkRates> links) {
  const auto at = static_cast<size_t>(place);
  return schedule.is_host(place) || at >= links.size() ? nullptr : &links[at];
}

}  // namespace

Route copy_route(const Schedule& schedule, const Task& copy) {
  const auto place = [&](const BufferUse& use) {
    return schedule.buffers[static_cast<size_t>(use.buffer)].place;
  };
  return {place(copy.uses[0]), place(copy.uses[1])};
}

double copy_latency(const Schedule& schedule, const Route& route,
                    std::span<const LinkRates> links) {
  const LinkRates *out = link_of(schedule, route.from, links),
                  *in = link_of(schedule, route.to, links);
  return (out == nullptr ? 0 : out->out.latency_s) + (in == nullptr ? 0 : in->in.latency_s);
}

Simulator::Simulator(const Schedule& schedule, std::span<const LinkRates> links,
                     std::vector<std::vector<TaskId>> orders, LoadSimulation* loads)
    : schedule_(schedule),
      orders_(orders.empty() ? order_of_schedule(schedule) : std::move(orders)),
      loads_(loads) {
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

/// The resources of copies.
void Simulator::add_links(std::span<const LinkRates> links) {
  enum : int32_t { in, out };
  std::map<const RootComplex*, int32_t> roots;
  for (const LinkRates& link : links) {
    rates_.push_back(link.in.bytes_per_s);
    rates_.push_back(link.out.bytes_per_s);
  }
  for (const LinkRates& link : links) {
    if (link.root == nullptr || !roots.emplace(link.root, std::ssize(rates_)).second) continue;
    rates_.push_back(link.root->in.bandwidth());
    rates_.push_back(link.root->out.bandwidth());
  }
  const auto between_ranks = static_cast<int32_t>(rates_.size());
  rates_.push_back(1);
  size_t used = 0;
  const auto pass = [&](TaskLoad& load, Place place, int32_t direction) {
    const LinkRates* link = link_of(schedule_, place, links);
    if (link == nullptr) return;
    load.through[used++] = 2 * place + direction;
    if (link->root != nullptr) load.through[used++] = roots.at(link->root) + direction;
  };
  passes_.resize(turns_.size());
  for (size_t t = 0; t < schedule_.tasks.size(); ++t) {
    const Task& task = schedule_.tasks[t];
    if (kind_costs(task.kind).talks) passes_[t].through[0] = between_ranks;
    if (task.kind != TaskKind::copy) continue;
    const Route route = copy_route(schedule_, task);
    used = 0;
    pass(passes_[t], route.from, out);
    pass(passes_[t], route.to, in);
  }
  device_links_.resize(schedule_.places.size());
  for (size_t place = 0; place < schedule_.places.size(); ++place) {
    const LinkRates* link = link_of(schedule_, static_cast<Place>(place), links);
    if (link == nullptr) continue;
    for (const int32_t direction : {in, out}) {
      TaskLoad& load = device_links_[place][static_cast<size_t>(direction)];
      used = 0;
      pass(load, static_cast<Place>(place), direction);
      load.seconds = (direction == in ? link->in : link->out).latency_s;
    }
  }
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
  const EventTimes times = events_->run(loads, rates_, loads_);

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
    step.trace.push_back({id, begin, end, static_cast<uint64_t>(demands[at(id)].bytes), 0,
                          std::max(0.0, end - begin - worked[at(id)])});
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
