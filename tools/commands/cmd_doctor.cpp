// hearth doctor: what this machine is, what its links reach, and what is slower than it should be.
#include <algorithm>
#include <memory>

#include "base/error_format.h"
#include "base/stopwatch.h"
#include "commands/commands.h"
#include "commands/output.h"
#include "commands/rank_links.h"
#include "cpu_kernels/cpu_info.h"
#include "device/cuda_device.h"
#include "device/cuda_runtime.h"
#include "device/device_list.h"
#include "device/virtual_device.h"
#include "doctor/diagnosis.h"
#include "doctor/diagnosis_json.h"
#include "doctor/diagnosis_text.h"
#include "setup/host_nodes.h"
#include "setup/place_costs.h"
#include "topology/hwloc_xml.h"

namespace hearth {
namespace {

// The whole command takes 20 s at most on a machine whose devices start in a few. All measurements
// share a deadline: late ones are left out, and said to be.
constexpr double kDeviceSeconds = 8, kMemorySeconds = 4, kDeadline = 14;
// Of the 512 MiB that the whole command takes at most.
constexpr uint64_t kBufferBytes = uint64_t{384} << 20;

/// Devices with what is known of their links.
struct Measured {
  std::vector<std::unique_ptr<Device>> devices;
  std::vector<MeasuredDevice> links;

  MeasuredDevice& add(std::unique_ptr<Device> device, double nominal_in, double nominal_out) {
    links.push_back({device.get(), nominal_in, nominal_out});
    devices.push_back(std::move(device));
    return links.back();
  }
};

double nominal_of(const Topology& topology, const std::string& bus_id) {
  const PciDevice* device = topology.find_device(bus_id);
  if (device == nullptr) return 0;
  const auto link = read_pci_link(device->address);
  return link ? link->bytes_per_s() : device->link_bytes_per_s;
}

void open_gpus(std::vector<int> numbers, bool all, Topology& topology, Measured& measured,
               std::vector<Warning>& warnings) {
  std::string why_not;
  CudaCalls* calls = cuda_calls(why_not);
  if (calls == nullptr) {
    if (!all) throw usage_error("--devices cuda: " + why_not);
    if (!topology.accelerators.empty()) {
      warnings.push_back({"cuda", "accelerators are not measured: " + why_not});
    }
    return;
  }
  if (all) {
    int count = 0;
    if (calls->device_count(&count) != kCudaOk) count = 0;
    for (int i = 0; i < count; ++i) numbers.push_back(i);
  }
  std::vector<CudaDeviceOptions> wanted;
  for (const int number : numbers) wanted.emplace_back().number = number;
  if (wanted.empty()) return;
  CudaDevices started = make_cuda_devices(*calls, wanted);
  for (const std::string& note : started.notes) warnings.push_back({"cuda", note});
  for (size_t i = 0; i < started.devices.size(); ++i) {
    CudaDeviceInfo info;
    if (calls->device_info(numbers[i], &info) != kCudaOk) info = {};
    topology.add_accelerator(info.bus_id, "cuda" + std::to_string(numbers[i]));
    const double nominal = nominal_of(topology, info.bus_id);
    measured.add(std::move(started.devices[i]), nominal, nominal);
  }
}

// The lower of two rates, 0 meaning no limit.
double lower(double a, double b) { return a <= 0 ? b : b <= 0 ? a : std::min(a, b); }

Measured open_devices_to_measure(const Options& options, Topology& topology,
                                 std::vector<Warning>& warnings) {
  std::vector<DeviceItem> items;
  try {
    items = parse_device_list(options.devices);
  } catch (const Error& e) {
    throw Error(e.code(), std::string("--devices: ") + e.what());
  }
  check_asked_cores(items, topology.cores.size());
  Measured measured;
  std::vector<int> gpus;
  const bool all = items.front().kind == DeviceKind::automatic;
  for (const DeviceItem& item : items) {
    if (item.kind == DeviceKind::cuda) gpus.push_back(item.number);
  }
  if (all || !gpus.empty()) open_gpus(gpus, all, topology, measured, warnings);
  size_t next = 0;
  const ListedTables tables(items);
  VirtualShares shares =
      share_host(items, cpus_of_listed_nodes(items, topology, topology.worker_cpus()));
  for (const DeviceItem& item : items) {
    if (item.kind != DeviceKind::virtual_device) continue;
    VirtualOptions& device = shares.devices[next++];
    if (const auto table = tables.of(item)) take_links(*table, item.keys, device);
    const double root = item.keys.root_bandwidth;
    MeasuredDevice& added =
        measured.add(make_virtual_device(device), lower(device.h2d, root), lower(device.d2h, root));
    added.latency_in = device.latency;
    added.latency_out = device.d2h_latency < 0 ? device.latency : device.d2h_latency;
  }
  return measured;
}

/// Adds to the topology what devices show when they start.
MachineFindings examine(const Options& options, Topology& topology, const Stopwatch& watch) {
  MachineFindings found;
  found.isa = cpu_isa();
  found.limits = read_machine_limits();
  const uint64_t bytes = std::min(kBufferBytes, topology.total_memory / 16);
  const auto bounds = [&](double seconds, double after) {
    const double left = kDeadline - after - watch.seconds();
    return MeasurementBounds{std::min(seconds, left), bytes, std::max(0.0, left - seconds)};
  };
  {
    const Measured measured = open_devices_to_measure(options, topology, found.warnings);
    found.links = measure_device_links(measured.links, bounds(kDeviceSeconds, kMemorySeconds));
  }
  for (LinkMeasurement& link : measure_memory(topology, bounds(kMemorySeconds, 0))) {
    found.links.push_back(std::move(link));
  }
  for (const auto* devices : {&topology.accelerators, &topology.nics}) {
    for (const PciDevice& seen : *devices) {
      if (const auto link = read_pci_link(seen.address)) {
        found.pci_links.emplace_back(seen.address, *link);
      }
    }
  }
  found.mpi = find_mpi();
  found.nccl = find_nccl();
  return found;
}

}  // namespace

ExitCode run_doctor(const Options& options, LaunchedRanks* launched) {
  const Stopwatch watch;
  constexpr double kRankSeconds = 3;
  const LinksOfRanks ranks = measure_links_of_ranks(options, launched, kRankSeconds);
  if (ranks.ended) return *ranks.ended;
  Topology topology;
  std::optional<MachineFindings> machine;
  if (options.topology.empty()) {
    topology = detect_topology(Devices::look);
    machine = examine(options, topology, watch);
    for (const CostLink& link : ranks.links) {
      machine->links.push_back({link.link, 0, link.bytes_per_s, link.together});
    }
  } else {
    if (options.devices != "auto") {
      throw usage_error("--devices: nothing is measured with --topology; leave out one of them");
    }
    topology = read_topology(options.topology);
  }
  const Diagnosis diagnosis = diagnose(std::move(topology), std::move(machine));
  if (options.json) {
    print_json(diagnosis_json(diagnosis));
  } else {
    print(diagnosis_text(diagnosis));
  }
  return ExitCode::done;
}

}  // namespace hearth
