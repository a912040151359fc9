#include "setup/described_places.h"

#include <algorithm>

#include "base/error_format.h"
#include "device/cuda_device.h"
#include "device/virtual_device.h"
#include "ops/registry.h"
#include "setup/place_costs.h"

namespace hearth {

void take_described_table(ComputePlace& place, const DescribedMachine& machine,
                          const std::string& name) {
  if (place.costs) return;
  place.costs = machine.table_of(name, place.seat.accelerator);
  place.paced = false;
}

void take_host_tables(RunDevices& run, const DescribedMachine& machine) {
  for (Place node = 0; node < run.hosts; ++node) {
    ComputePlace& place = run.places[static_cast<size_t>(node)];
    // The first place is called host, and is also the node of its seat.
    const std::string name = "host:" + std::to_string(place.seat.nodes.front());
    take_described_table(place, machine, run.hosts > 1 ? name : "host");
  }
}

void take_described_links(VirtualOptions& device, const PlaceSeat& seat,
                          const DescribedMachine& machine) {
  const auto measured = [&](bool to_device) {
    for (const std::string& name : {device.name, seat.accelerator}) {
      const double rate =
          to_device ? machine.link_rate("host", name) : machine.link_rate(name, "host");
      if (rate > 0) return rate;
    }
    return seat.link_bytes_per_s;
  };
  if (device.h2d == 0) device.h2d = measured(true);
  if (device.d2h == 0) device.d2h = measured(false);
}

ComputePlace described_gpu(const DeviceItem& item, const PlaceSeat& seat,
                           const DeviceRequest& request, std::string_view op_set) {
  const auto& sets = op_sets();
  const auto ops = std::find_if(sets.begin(), sets.end(),
                                [&](const OpSet* set) { return set->name() == op_set; });
  if (ops == sets.end()) {
    throw usage_error(
        "--devices {}: this program has no CUDA, so it does not know what memory the ops of a GPU "
        "need; plan with virtual:mem=SIZE, which stands in the place of an accelerator",
        item.name());
  }
  uint64_t memory = request.gpu_memory;
  if (memory == 0 && seat.memory > 0) memory = default_gpu_budget(seat.memory);
  if (memory == 0) {
    throw usage_error("--devices {}: give --gpu-memory: --machine does not say how much it has",
                      item.name());
  }
  VirtualOptions options;
  options.name = item.name();
  options.memory = memory;
  ComputePlace place;
  place.seat = seat;
  take_described_table(place, *request.described, options.name);
  if (place.costs) take_links(*place.costs, item.keys, options);
  take_described_links(options, seat, *request.described);
  place.device = make_virtual_device(options);
  place.budget = {options.name, options.memory, "--gpu-memory {}"};
  place.host_reaches = false;
  place.ops = *ops;
  place.memory = SpaceKind::device;
  return place;
}

}  // namespace hearth
