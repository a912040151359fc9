#include "setup/machine.h"

#include "base/error.h"
#include "base/log.h"
#include "ops/registry.h"
#include "topology/hwloc_xml.h"

namespace hearth {

namespace {

/// The machine that a plan is for, if it is only described. A plan with a topology and a GPU is for
/// the topology's machine, unless a run could open the GPU here.
std::shared_ptr<const DescribedMachine> described_machine(const RunConfig& config) {
  if (config.machine.empty()) {
    if (!config.planned_only || config.topology.empty() || !names_gpu(config.devices)) return {};
    if (finds_gpus() &&
        is_same_machine(detect_topology(Devices::look), read_topology(config.topology))) {
      return {};
    }
    log_info("--topology " + quoted(config.topology) +
             ": plans for the machine of this file alone, as its GPUs are not here");
  }
  return std::make_shared<const DescribedMachine>(
      read_described_machine(config.machine, config.topology));
}

/// Sets the topology: this machine's or the file's. Returns whether it is this machine.
bool find_topology(const RunConfig& config, OpenedModel& model) {
  model.topology = detect_topology(names_gpu(config.devices) ? Devices::look : Devices::skip);
  if (config.topology.empty()) return true;
  Topology given = read_topology(config.topology);
  const bool here = is_same_machine(model.topology, given);
  given.has_real_nodes = here && model.topology.has_real_nodes;
  if (here) given.cores = model.topology.cores;  // that this process may use
  model.topology = std::move(given);
  if (!here) {
    log_info("--topology " + quoted(config.topology) +
             ": not this machine; a run with it binds no worker and no memory");
  }
  return here;
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
  const bool here = described == nullptr && find_topology(config, model);
  DeviceRequest request;
  request.devices = config.devices;
  request.rank = config.named_rank;
  request.gpu_memory = config.gpu_memory;
  request.host_budget = config.cpu_memory > 0 ? config.cpu_memory : model.topology.total_memory;
  request.whole_memory = config.cpu_memory == 0;
  request.cores = own_part(model.topology.worker_cpus(), config);
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
  request.bind = here;
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
