// The links between the places of a schedule, as resources of a simulation. Pure; no clock.
#pragma once

#include <span>
#include <vector>

#include "device/link_rate.h"
#include "plan/event_simulation.h"
#include "plan/schedule.h"

namespace hearth {

/// The two places that a copy joins.
struct Route {
  Place from = kHostPlace, to = kHostPlace;
  friend auto operator<=>(const Route&, const Route&) = default;
};
Route copy_route(const Schedule& schedule, const Task& copy);
/// The latency of a copy: of all links that it passes. `links`: by place.
double copy_latency(const Schedule& schedule, const Route& route, std::span<const LinkRates> links);

/// A copy passes the links of both of its places, and the root complexes above them, at the same time.
/// Hosts have no links, nor have places past the end of `links`.
class CopyLinks {
 public:
  /// `links`: by place; must outlive the object, like the schedule.
  CopyLinks(const Schedule& schedule, std::span<const LinkRates> links);

  /// What each resource passes per second, one for each direction; 0: no limit.
  const std::vector<double>& rates() const { return rates_; }
  /// The resources that copies pass. Nothing else is set.
  TaskLoad of_route(const Route& route) const;
  /// The resources and the latency between a device and the host.
  TaskLoad to_device(Place device) const;
  TaskLoad from_device(Place device) const;

 private:
  const LinkRates* link(Place place) const;
  size_t pass(TaskLoad& load, size_t used, Place place, int32_t direction) const;

  const Schedule& schedule_;
  const std::span<const LinkRates> links_;
  std::vector<double> rates_;
  std::vector<int32_t> root_of_;  // by place: the first resource of its root complex, or -1
};

}  // namespace hearth
