// What a timeline says of the resources of a step.
#include <catch2/catch_test_macros.hpp>

#include "plan/step_use.h"

namespace hearth::test {
namespace {

using Seconds = std::map<std::string, double>;
using Bytes = std::map<std::string, uint64_t>;

const std::vector<std::string> kPlaces = {"host", "gpu", "far"};

struct Drawn {
  Schedule schedule;
  Trace trace;

  void add(TaskKind kind, Place place, double begin, double end, double cpu_s = 0) {
    Task task;
    task.kind = kind;
    task.place = place;
    trace.push_back({static_cast<TaskId>(schedule.tasks.size()), begin, end, 0, cpu_s});
    schedule.tasks.push_back(task);
  }
  void copy(Place from, Place to, double begin, double end, uint64_t bytes, double cpu_s = 0) {
    add(TaskKind::copy, to == kHostPlace ? from : to, begin, end, cpu_s);
    trace.back().bytes = bytes;
    for (const Place place : {from, to}) {
      schedule.tasks.back().uses.push_back(
          {static_cast<BufferId>(schedule.buffers.size()), Port{}});
      schedule.buffers.emplace_back().place = place;
    }
  }
  StepUse use(int32_t nodes = 1) {
    schedule.places = places_of_rank(kPlaces.size(), nodes);
    return use_of(schedule, trace, kPlaces);
  }
};

TEST_CASE("step use: every resource of the run is named, used or not") {
  const StepUse nothing = Drawn{}.use();
  CHECK(nothing.bytes ==
        Bytes{{"gpu->host", 0}, {"host->gpu", 0}, {"far->host", 0}, {"host->far", 0}});
  CHECK(nothing.busy.size() == 7);
  for (const auto& [name, seconds] : nothing.busy) CHECK(seconds == 0);
  CHECK(nothing.stall == Seconds{{"cpu", 0}, {"gpu", 0}, {"far", 0}});

  const StepUse host = use_of({}, {}, std::span(kPlaces).first(1));
  CHECK(host.bytes.empty());
  CHECK(host.busy == Seconds{{"cpu", 0}});
  CHECK(host.limit() == "cpu");
}

TEST_CASE("step use: tasks count for their place, copies for their link") {
  Drawn step;
  step.add(TaskKind::attention, 1, 0, 2);
  step.copy(1, 2, 2, 3, 500);
  step.add(TaskKind::attention, 1, 2.5, 3.5);
  step.add(TaskKind::experts, 2, 3, 7);
  step.copy(2, 0, 7, 7.25, 100);
  step.copy(0, 1, 7.5, 8, 30);
  step.copy(0, 1, 7.75, 8.25, 12);  // beside the copy before
  step.add(TaskKind::clip, 0, 8.25, 8.5);
  const StepUse use = step.use();
  CHECK(use.bytes == Bytes{{"gpu->far", 500},
                           {"gpu->host", 0},
                           {"host->gpu", 42},
                           {"far->host", 100},
                           {"host->far", 0}});
  CHECK(use.busy == Seconds{{"cpu", 0.25},
                            {"gpu", 3},
                            {"far", 4},
                            {"gpu->far", 1},
                            {"gpu->host", 0},
                            {"host->gpu", 0.75},
                            {"far->host", 0.25},
                            {"host->far", 0}});
  // Before its last task, the second device waited for the first, and the host for all.
  CHECK(use.stall == Seconds{{"cpu", 8.25}, {"gpu", 0.5}, {"far", 3}});
  CHECK(use.limit() == "far");
}

TEST_CASE("step use: NUMA nodes of the host are one resource, with links between them") {
  Drawn step;
  step.add(TaskKind::experts, 0, 0, 2, 4);
  step.add(TaskKind::experts, 1, 1, 4, 6);  // the node "gpu", as it were
  step.copy(1, 0, 4, 5, 7);
  step.add(TaskKind::combine, 0, 6, 7, 1);
  const StepUse use = step.use(2);
  CHECK(use.bytes == Bytes{{"gpu->host", 7}, {"host->far", 0}, {"far->host", 0}});
  CHECK(use.busy ==
        Seconds{{"cpu", 5}, {"far", 0}, {"gpu->host", 1}, {"host->far", 0}, {"far->host", 0}});
  CHECK(use.stall == Seconds{{"cpu", 2}, {"far", 0}});
  CHECK(use.products_s == 11);
}

TEST_CASE("step use: a copy of some experts' rows also reads their offsets on the host") {
  Drawn step;
  step.copy(1, 2, 0, 1, 500);
  step.schedule.tasks.back().part = {2, 4};
  step.schedule.tasks.back().uses.push_back(
      {static_cast<BufferId>(step.schedule.buffers.size()), Port{}});
  step.schedule.buffers.emplace_back().place = kHostPlace;
  CHECK(step.use().bytes.at("gpu->far") == 500);
  CHECK(step.use().bytes.at("gpu->host") == 0);
}

TEST_CASE("step use: what takes longest limits the step, a link too") {
  Drawn step;
  step.add(TaskKind::experts, 1, 0, 1);
  step.copy(1, 0, 1, 4, 9);
  CHECK(step.use().limit() == "gpu->host");
  step.add(TaskKind::experts, 0, 4, 8);
  CHECK(step.use().limit() == "cpu");
}

TEST_CASE("step use: seconds of workers are of sweeps or of products") {
  Drawn step;
  step.add(TaskKind::experts, 0, 0, 1, 16);
  step.add(TaskKind::combine, 0, 1, 2, 8);
  step.copy(0, 1, 2, 3, 9, 4);
  step.add(TaskKind::norm, 0, 3, 4, 2);
  step.add(TaskKind::clip, 0, 4, 4, 32);
  step.add(TaskKind::update, 0, 4, 5, 1);
  CHECK(step.use().products_s == 56);
  CHECK(step.use().sweeps_s == 7);
}

}  // namespace
}  // namespace hearth::test
