// How many tasks a second the simulator runs: bench_simulator [devices [layers [micro-batches]]].
// The schedule is that of a model over a host and several devices, experts apart from attention.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>

#include "plan/cost_model.h"
#include "plan/simulator.h"
#include "support/tiny_places.h"

using namespace hearth;
using namespace hearth::test;

namespace {

constexpr int kRuns = 5;

/// Of the processor, so that other work on the machine counts little.
template <class F>
double best_seconds(F&& f) {
  double best = 1e30;
  for (int i = 0; i < kRuns; ++i) {
    const std::clock_t begin = std::clock();
    f();
    best = std::min(best, static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC);
  }
  return best;
}

}  // namespace

int main(int argc, char** argv) {
  const auto given = [&](int at, int otherwise) {
    return argc > at ? std::atoi(argv[at]) : otherwise;
  };
  const int devices = given(1, 4), layers = given(2, 48), micro_batches = given(3, 32);
  register_all_op_sets();
  const TinyModel model(
      tiny_config({{"num_hidden_layers", int64_t{layers}}}), find_op_set("cpu"), DType::f32, 1, {},
      {virtual_devices(devices),
       [=](ParameterTable& table) { place_at_random(table, static_cast<Place>(devices + 1), 1); }});
  const Schedule schedule =
      single_train_schedule(model.input(32, 32, micro_batches), micro_batches, true);
  const RootComplex root(2e9);
  std::vector<LinkRates> links(static_cast<size_t>(devices) + 1);
  for (size_t at = 1; at < links.size(); ++at) links[at] = {{1e9, 1e-6}, {1e9, 1e-6}, &root};
  std::vector<TaskDemand> demands;
  int64_t copies = 0;
  for (const Task& task : schedule.tasks) {
    const bool copy = task.kind == TaskKind::copy;
    copies += copy;
    demands.push_back({1e-6 * static_cast<double>(1 + demands.size() % 7), copy ? 5e3 : 0});
  }
  const Simulator simulator(schedule, links);
  double time = 0;
  const double run = best_seconds([&] { time += simulator.run(demands).time_s; });
  const double dependent =
      best_seconds([&] { time += static_cast<double>(dependencies(schedule).size()); });
  const double whole =
      best_seconds([&] { time += Simulator(schedule, links).run(demands).time_s; });
  const auto tasks = static_cast<double>(schedule.tasks.size());
  std::printf("%zu tasks, %lld of them copies, %zu streams\n", schedule.tasks.size(),
              static_cast<long long>(copies), schedule.streams.size());
  std::printf("simulated:                       %.2f M tasks/s\n", tasks / run / 1e6);
  std::printf("dependencies of the schedule:    %.2f M tasks/s\n", tasks / dependent / 1e6);
  std::printf("both, from the schedule alone:   %.2f M tasks/s\n", tasks / whole / 1e6);
  return time > 0 ? 0 : 1;
}
