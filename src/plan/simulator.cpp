#include "plan/simulator.h"

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "device/link.h"

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
                     std::vector<std::vector<TaskId>> orders)
    : schedule_(schedule),
      orders_(orders.empty() ? order_of_schedule(schedule) : std::move(orders)),
      events_(orders_, dependencies(schedule)),
      loads_(schedule.tasks.size()) {
  if (const std::vector<int32_t> circle = events_.deadlock(); !circle.empty()) {
    std::string names;
    for (const TaskId task : circle) {
      names +=
          (names.empty() ? "" : ", then ") + describe(schedule.tasks[static_cast<size_t>(task)]);
    }
    HEARTH_CHECK(circle.empty(), "simulator: tasks wait for each other: " + names);
  }
  add_links(links);
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
  for (size_t t = 0; t < loads_.size(); ++t) {
    const Task& task = schedule_.tasks[t];
    if (task.kind != TaskKind::copy) continue;
    size_t used = 0;
    const auto pass = [&](Place place, int32_t direction) {
      const LinkRates* link = link_of(schedule_, place, links);
      if (link == nullptr) return;
      loads_[t].through[used++] = 2 * place + direction;
      if (link->root != nullptr) loads_[t].through[used++] = roots.at(link->root) + direction;
    };
    const Route route = copy_route(schedule_, task);
    pass(route.from, out);
    pass(route.to, in);
  }
}

SimulatedStep Simulator::run(std::span<const TaskDemand> demands) const {
  HEARTH_CHECK(demands.size() == loads_.size(), "simulator: a demand for each task");
  std::vector<TaskLoad> loads = loads_;
  for (size_t t = 0; t < loads.size(); ++t) {
    loads[t].seconds = demands[t].seconds;
    loads[t].amount = demands[t].bytes;
  }
  const EventTimes times = events_.run(loads, rates_);

  SimulatedStep step;
  step.time_s = times.last;
  step.trace.reserve(times.order.size());
  for (const TaskId id : times.order) {
    const auto t = static_cast<size_t>(id);
    step.trace.push_back(
        {id, times.begin[t], times.end[t], static_cast<uint64_t>(demands[t].bytes)});
  }

  for (const std::vector<TaskId>& order : orders_) {
    double ended = 0, stall = 0;
    for (const TaskId id : order) {
      stall += times.begin[static_cast<size_t>(id)] - ended;
      ended = times.end[static_cast<size_t>(id)];
    }
    step.stall_s.push_back(stall);
  }
  return step;
}

}  // namespace hearth
