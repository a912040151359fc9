#include "setup/machine.h"

#include "base/error.h"
#include "base/log.h"
#include "topology/hwloc_xml.h"

namespace hearth {

void start_machine(const RunConfig& config, OpenedModel& model) {
  const bool gpus = config.devices.find("cuda") != std::string::npos;
  model.topology = detect_topology(gpus ? Devices::look : Devices::skip);
  bool here = true;  // whether the topology is this machine's
  if (!config.topology.empty()) {
    Topology given = read_topology(config.topology);
    here = is_same_machine(model.topology, given);
    given.has_real_nodes = here && model.topology.has_real_nodes;
    if (here) given.cores = model.topology.cores;  // that this process may use
    model.topology = std::move(given);
    if (!here) {
      log_info("--topology " + quoted(config.topology) +
               ": not this machine; no worker and no memory is bound");
    }
  }
  const auto cores = static_cast<int>(model.topology.cores.size());
  const std::vector<int> cpus = here ? model.topology.worker_cpus() : std::vector<int>{};
  const int workers = config.threads > 0 || here ? config.threads : cores;
  const uint64_t budget = config.cpu_memory > 0 ? config.cpu_memory : model.topology.total_memory;
  model.devices = open_devices({config.devices, config.gpu_memory, budget, cpus, workers,
                                config.parallel, !config.topology.empty(), &model.topology});
  model.cores = model.devices.cores;  // fewer if a virtual device has its own
  model.workers = model.devices.workers;
}

std::shared_ptr<const OpenedModel> open_shapes(const RunConfig& config, ModelSpec spec,
                                               ParameterTable table) {
  auto model = std::make_shared<OpenedModel>();
  model->spec = std::move(spec);
  model->base = std::move(table);
  start_machine(config, *model);
  return model;
}

}  // namespace hearth
