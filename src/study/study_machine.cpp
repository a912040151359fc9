#include "study/study_machine.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace hearth {

namespace {

constexpr double kF32 = 4;  // bytes

/// What times a place: operations and bytes of memory per second, and seconds of each task.
struct Roofline {
  double flops_per_s = 0, bytes_per_s = 0, launch_s = 0;
  double seconds(double flops, double bytes) const {
    return launch_s + std::max(flops / flops_per_s, bytes / bytes_per_s);
  }
};

/// Tokens at the points of the curves: powers of two, and half steps between.
std::vector<int64_t> sizes() {
  std::vector<int64_t> sizes{1, 2, 3};
  for (int64_t n = 4; n <= int64_t{1} << 18; n *= 2) {
    sizes.push_back(n);
    sizes.push_back(n + n / 2);
  }
  return sizes;
}

CostEntry entry(TaskKind kind, Phase phase, std::optional<int64_t> cores) {
  CostEntry of;
  of.kind = kind;
  of.phase = phase;
  of.cores = cores;
  return of;
}

template <class Seconds>
CostEntry curve(TaskKind kind, Phase phase, std::optional<int64_t> cores, Seconds&& seconds) {
  CostEntry of = entry(kind, phase, cores);
  of.units = sizes();
  for (const int64_t n : of.units) of.seconds.push_back(seconds(static_cast<double>(n)));
  return of;
}

/// Backward makes two products of each of forward, and reads weights and reads and writes gradients.
void add_entries(const StudyShape& shape, const Roofline& place, std::optional<int64_t> cores,
                 std::vector<CostEntry>& entries) {
  const auto hidden = static_cast<double>(shape.hidden), width = static_cast<double>(shape.width);
  const double expert = 2 * hidden * width, projections = 4 * hidden * hidden;
  for (const Phase phase : {Phase::forward, Phase::backward}) {
    const bool backward = phase == Phase::backward;
    const double products = backward ? 2 : 1, passes = backward ? 3 : 1;
    entries.push_back(curve(TaskKind::experts, phase, cores, [&](double n) {
      return place.seconds(2 * products * expert * n, kF32 * passes * expert);
    }));
    entries.push_back(curve(TaskKind::attention, phase, cores, [&](double n) {
      const double scores = 2 * hidden * static_cast<double>(kStudySequence) / 2;
      return place.seconds(2 * products * (projections + scores) * n,
                           kF32 * (passes * projections + 8 * products * hidden * n));
    }));
    for (const TaskKind kind :
         {TaskKind::embed, TaskKind::dispatch, TaskKind::combine, TaskKind::head}) {
      entries.push_back(curve(kind, phase, cores, [&](double n) {
        return place.seconds(0, kF32 * products * static_cast<double>(1 + kStudyTopK) * hidden * n);
      }));
    }
  }
  constexpr int64_t kParameters = 1'000'000'000;
  for (const auto& [kind, bytes] :
       {std::pair(TaskKind::norm, kF32), {TaskKind::update, 7 * kF32}}) {
    CostEntry of = entry(kind, Phase::forward, cores);
    of.units = {1, kParameters};
    of.seconds = {0, bytes * static_cast<double>(kParameters) / place.bytes_per_s};
    entries.push_back(std::move(of));
  }
}

}  // namespace

CostTable estimated_gpu_table(const StudyShape& shape) {
  std::vector<CostEntry> entries;
  add_entries(shape, {kStudyGpuFlops, kStudyGpuBytes, kStudyLaunch}, std::nullopt, entries);
  return {std::move(entries), {}};
}

CostTable estimated_host_table(const StudyShape& shape, int cores_per_gpu, int gpus) {
  std::vector<CostEntry> entries;
  for (const int cores : std::set{cores_per_gpu, cores_per_gpu * gpus}) {
    add_entries(shape, {cores * kStudyCoreFlops, cores * kStudyCoreBytes, 0}, cores, entries);
  }
  return {std::move(entries), {}};
}

namespace {

CostTable without_updates(const CostTable& table) {
  std::vector<CostEntry> entries = table.entries();
  std::erase_if(entries, [](const CostEntry& of) {
    return of.kind == TaskKind::update || of.kind == TaskKind::norm;
  });
  return {std::move(entries), table.links()};
}

}  // namespace

std::shared_ptr<const DescribedMachine> described(const StudyMachine& machine,
                                                  const StudyShape& shape) {
  auto of = std::make_shared<DescribedMachine>();
  of->topology.source = "study";
  of->topology.packages = {{0, ""}};
  of->topology.nodes = {{0, 0, 0}};
  // A GPU takes none of the cores that work for it: a virtual device has one more for itself.
  for (int core = 0; core < machine.gpus * (1 + machine.cores_per_gpu); ++core) {
    of->topology.cores.push_back({0, 0, {core}});
  }
  const auto gpu = machine.gpu != nullptr
                       ? machine.gpu
                       : std::make_shared<const CostTable>(estimated_gpu_table(shape));
  for (int i = 0; i < machine.gpus; ++i) of->tables["virtual:" + std::to_string(i)] = gpu;
  const CostTable host = machine.host != nullptr
                             ? *machine.host
                             : estimated_host_table(shape, machine.cores_per_gpu, machine.gpus);
  of->tables["host"] =
      std::make_shared<const CostTable>(machine.updates ? host : without_updates(host));
  return of;
}

std::string device_list(const StudyMachine& machine) {
  constexpr double kLatency = 20e-6;
  std::string list;
  for (int i = 0; i < machine.gpus; ++i) {
    list += fmt::format("virtual:cores=1/mem={}/h2d={:.0f}/d2h={:.0f}/latency={:.0f}us/root=root{}",
                        machine.gpu_memory, machine.link_bytes_per_s, machine.link_bytes_per_s,
                        1e6 * kLatency, i * machine.roots / machine.gpus);
    if (machine.root_bytes_per_s > 0) {
      list += fmt::format("/root-bw={:.0f}", machine.root_bytes_per_s);
    }
    list += ',';
  }
  return list + "host";
}

}  // namespace hearth
