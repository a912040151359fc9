#include "setup/described_places.h"

#include "base/error_format.h"
#include "device/cuda_device.h"
#include "device/virtual_device.h"
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
    return 0.0;
  };
  if (device.h2d == 0) device.h2d = measured(true);
  if (device.d2h == 0) device.d2h = measured(false);
}

void take_nominal_links(VirtualOptions& device, const PlaceSeat& seat) {
  if (device.h2d == 0) device.h2d = seat.link_bytes_per_s;
  if (device.d2h == 0) device.d2h = seat.link_bytes_per_s;
}

ComputePlace described_gpu(const DeviceItem& item, const PlaceSeat& seat,
                           const DeviceRequest& request, const OpSet* ops) {
  if (ops == nullptr) {
    throw usage_error(
        "--devices {}: this program does not know what memory the ops of a GPU need; plan with "
        "virtual:mem=SIZE, which stands in the place of an accelerator",
        item.name());
  }
  uint64_t memory = request.gpu_memory;
  if (memory == 0 && seat.memory > 0) memory = default_gpu_budget(seat.memory);
  if (memory == 0) {
    throw usage_error("--devices {}: {} does not say how much memory it has; give --gpu-memory",
                      item.name(), quoted(request.topology->source));
  }
  VirtualOptions options;
  options.name = item.name();
  options.memory = memory;
  ComputePlace place;
  place.seat = seat;
  take_described_table(place, *request.described, options.name);
  if (place.costs) take_links(*place.costs, item.keys, options);
  take_described_links(options, seat, *request.described);
  take_nominal_links(options, seat);
  place.device = make_virtual_device(options);
  place.budget = {options.name, options.memory, "--gpu-memory {}"};
  place.host_reaches = false;
  place.ops = ops;
  place.memory = SpaceKind::device;
  return place;
}

}  // namespace hearth
