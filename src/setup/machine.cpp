#include "setup/machine.h"

#include <algorithm>
#include <iterator>
#include <set>

#include "base/counted.h"
#include "base/error.h"
#include "base/log.h"
#include "device/device_list.h"
#include "ops/registry.h"
#include "setup/host_nodes.h"
#include "topology/hwloc_xml.h"

namespace hearth {

namespace {

/// The machine that a plan is for, if it is only described. A plan with a topology is for the
/// topology's machine, unless that is this one, and a run could open its GPUs here.
std::shared_ptr<const DescribedMachine> described_machine(const RunConfig& config) {
  const bool by_topology = config.machine.empty();
  const bool gpu = names_gpu(config.devices);
  if (by_topology) {
    if (!config.planned_only || config.topology.empty()) return {};
    const bool starts = !gpu || finds_gpus();
    const auto look = gpu ? Devices::look : Devices::skip;
    if (starts && is_same_machine(detect_topology(look), read_topology(config.topology))) return {};
    log_info("--topology " + quoted(config.topology) +
             ": not this machine; plans for the machine of this file alone");
  }
  DescribedMachine described = read_described_machine(config.machine, config.topology);
  described.assumed_rates = by_topology && !gpu;
  return std::make_shared<const DescribedMachine>(std::move(described));
}

/// A run has the memory of this machine, whatever a file says of it. Of nodes that are not here, the
/// memory is unknown.
void take_memory(Topology& given, const Topology& machine, bool here) {
  given.total_memory = machine.total_memory;
  for (NumaNode& node : given.nodes) {
    const NumaNode* const same = here ? machine.find_node(node.number) : nullptr;
    node.memory = same != nullptr ? same->memory : 0;
  }
}

/// Where a run is.
struct Whereabouts {
  bool here = true;      // the topology is of this machine
  int usable_cores = 0;  // of this machine
};

/// Sets the topology: this machine's or the file's.
Whereabouts find_topology(const RunConfig& config, OpenedModel& model) {
  model.topology = detect_topology(names_gpu(config.devices) ? Devices::look : Devices::skip);
  Whereabouts where{true, static_cast<int>(model.topology.cores.size())};
  if (config.topology.empty()) return where;
  Topology given = read_topology(config.topology);
  where.here = is_same_machine(model.topology, given);
  given.has_real_nodes = where.here && model.topology.has_real_nodes;
  if (where.here) given.cores = model.topology.cores;  // that this process may use
  take_memory(given, model.topology, where.here);
  model.topology = std::move(given);
  if (!where.here) {
    log_info("--topology " + quoted(config.topology) +
             ": not this machine; a run with it binds no worker and no memory");
  }
  return where;
}

/// The cores of another machine that stand for the few of this one: one of each node in turn, as many
/// as this process may use, at least one of each node that the list names.
std::vector<int> stand_ins(const RunConfig& config, const Topology& topology, int usable) {
  const std::vector<DeviceItem> items = parse_device_list(config.devices);
  const std::vector<int> all = topology.worker_cpus();
  const std::vector<int> listed = cpus_of_listed_nodes(items, topology, all);
  const auto named = static_cast<size_t>(std::ranges::count_if(items, [](const DeviceItem& item) {
    return item.kind == DeviceKind::host && item.number != kAllNodes;
  }));
  const auto most = std::max(static_cast<size_t>(usable), named);
  if (named > static_cast<size_t>(usable)) {
    log_warning("--devices: " + counted(static_cast<int64_t>(named), "NUMA node") + " share " +
                counted(usable, "core") + ": they wait for each other");
  }
  std::vector<std::vector<int>> by_node;
  for (const NumaNode& node : topology.nodes) {
    by_node.push_back(topology.worker_cpus_of_node(node.number));
  }
  std::set<int> taken;
  for (size_t round = 0; round < all.size(); ++round) {
    for (const std::vector<int>& cpus : by_node) {
      if (round >= cpus.size() || taken.size() >= most) continue;
      if (std::ranges::find(listed, cpus[round]) != listed.end()) taken.insert(cpus[round]);
    }
  }
  std::vector<int> cores;
  std::ranges::copy_if(all, std::back_inserter(cores),
                       [&](int cpu) { return taken.contains(cpu); });
  return cores;
}

/// A CPU of each core that the run may use, by the numbers of its topology.
std::vector<int> run_cores(const RunConfig& config, const OpenedModel& model,
                           const Whereabouts& where) {
  const bool all = where.here || model.described || config.threads > 0;
  return all ? model.topology.worker_cpus() : stand_ins(config, model.topology, where.usable_cores);
}

/// The cores that ranks on the same CPUs leave this one: a part of its own, if there is one for all.
/// Empty: the ranks share all. Threads do, since all run with the one opened model.
std::vector<int> own_part(const std::vector<int>& cores, const RunConfig& config) {
  const CpuShare& share = config.cpu_share;
  const int64_t own = config.threads;
  if (share.ranks == 1) return cores;
  if (share.threads || own < 1 || own * share.ranks > std::ssize(cores)) return {};
  const auto begin = cores.begin() + share.number * own;
  return {begin, begin + own};
}

}  // namespace

void start_machine(const RunConfig& config, OpenedModel& model) {
  if (!model.described) model.described = described_machine(config);
  const DescribedMachine* described = model.described.get();
  if (described != nullptr) model.topology = described->topology;
  find_op_set("cpu").assume_bf16(described ? std::optional(described->bf16) : std::nullopt);
  const Whereabouts where =
      described == nullptr ? find_topology(config, model) : Whereabouts{false, 0};
  DeviceRequest request;
  request.devices = config.devices;
  request.rank = config.named_rank;
  request.gpu_memory = config.gpu_memory;
  request.host_budget = config.cpu_memory > 0 ? config.cpu_memory : model.topology.total_memory;
  request.whole_memory = config.cpu_memory == 0;
  request.cores = own_part(run_cores(config, model, where), config);
  request.workers = config.threads;
  request.parallel = config.parallel;
  request.policy = config.policy;
  request.printed_equation = config.printed_equation;
  request.divide_experts = config.divide_experts;
  request.foresight = config.foresight;
  request.seats = !config.topology.empty() ? Seats::address
                  : described              ? Seats::described
                                           : Seats::keys;
  request.topology = &model.topology;
  request.bind = where.here;
  request.described = described;
  model.devices = open_devices(request);
  model.cores = model.devices.cores;  // fewer if a virtual device has its own
  model.workers = model.devices.workers;
}

std::shared_ptr<const OpenedModel> open_shapes(const RunConfig& config, ModelSpec spec,
                                               ParameterTable table,
                                               std::shared_ptr<const DescribedMachine> described) {
  HeldLog held;
  auto model = std::make_shared<OpenedModel>();
  model->described = std::move(described);
  model->spec = std::move(spec);
  model->base = std::move(table);
  start_machine(config, *model);
  model->said = held.take();
  return model;
}

}  // namespace hearth
