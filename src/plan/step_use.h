// What a step used of the resources of its run, from its timeline.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>

#include "plan/trace.h"

namespace hearth {

/// Resources are the host with all its nodes (`cpu`), each device by name (its compute streams)
/// and each link ("FROM->TO" by names of places). Every resource of the run is there, unused ones
/// with 0.
struct StepUse {
  std::map<std::string, uint64_t> bytes;  // by link: payload of the copies
  /// Seconds in which a task of the resource ran: of a link, a copy in flight. Tasks that overlap
  /// count once, so none is more than the step's time.
  std::map<std::string, double> busy;
  /// Of the host and the devices: seconds up to the end of its last task in which none of its tasks
  /// ran, or the one that ran waited for experts to be loaded.
  std::map<std::string, double> stall;
  /// Seconds of workers on the cores of the host: in norms, updates (which clear gradients) and
  /// copies of memory; and in all other tasks.
  double sweeps_s = 0, products_s = 0;

  /// The resource that was busy longest.
  const std::string& limit() const;
};

inline constexpr const char* kCpu = "cpu";

/// `places`: names of the places. The trace must be sorted
/// by begin. The links of a run are those between the host and each device, and those that the
/// schedule's copies use.
/// `blocks`: copies of blocks in the step, which use links as well.
StepUse use_of(const Schedule& schedule, const Trace& trace, std::span<const std::string> places,
               std::span<const BlockCopy> blocks = {});

}  // namespace hearth
