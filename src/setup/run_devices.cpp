#include "setup/run_devices.h"

#include <algorithm>
#include <limits>

#include "base/error_format.h"
#include "base/file_ops.h"
#include "base/log.h"
#include "base/user_cache.h"
#include "device/cuda_code.h"
#include "device/cuda_device.h"
#include "device/device_list.h"
#include "device/host_device.h"
#include "ops/registry.h"
#include "runtime/library_check.h"
#include "setup/described_places.h"
#include "setup/gpu_addresses.h"
#include "setup/host_nodes.h"
#include "setup/place_costs.h"
#include "setup/stream_teams.h"

namespace hearth {
namespace {

CudaBackEnd& back_end() {
  static CudaBackEnd one;
  return one;
}

CudaCalls* find_cuda(std::string& why_not) {
  if (back_end().calls == nullptr) {
    why_not = "this program has no CUDA";
    return nullptr;
  }
  return back_end().calls(why_not);
}

/// Why the GPU cannot be used, empty: it can. Empty, too, for one that is not there, which is refused
/// when it is started.
std::string missing_code(CudaCalls& calls, int number) {
  CudaDeviceInfo info;
  if (calls.device_info(number, &info) != kCudaOk) return {};
  return missing_cuda_code(back_end().architectures, info.major, info.minor);
}

/// `auto` stays on the host. If a driver shows that there is a GPU, says how to ask for it.
void say_how_to_ask_for_a_gpu() {
  const std::vector<std::string>& files = back_end().driver_files;
  const bool driver = std::any_of(files.begin(), files.end(), [](const std::string& path) {
    return file_info(path).kind != FileKind::none;
  });
  if (driver) {
    log_info(
        "computing on the host: --devices auto means host in this version; --devices cuda:0 asks "
        "for the first GPU, --devices cuda:0,host leaves experts that do not fit to the host");
  }
}

std::string check_directory() {
  const std::string cache = user_cache_directory();
  return cache.empty() ? cache : cache + "/checks";
}

// A library that computes something else than our own kernels is not called.
void check_libraries_of(const ComputePlace& place) {
  const RememberedChecks checks(check_directory());
  const LibraryVerdict verdict = check_libraries_once(*place.device, *place.ops, checks);
  for (const std::string& line : verdict.lines) log_warning(place.budget.name + ": " + line);
  std::string called;
  for (const OpLibrary& library : place.ops->libraries()) {
    called += (called.empty() ? "" : ", ") + library.name + ' ' + library.version;
  }
  if (called.empty()) return;
  log_info(place.budget.name + ": ops call " + called +
           (verdict.remembered ? "; an earlier start checked them" : ""));
}

CudaCalls& cuda_for(const DeviceItem& item) {
  std::string why_not;
  CudaCalls* calls = find_cuda(why_not);
  if (calls != nullptr) why_not = missing_code(*calls, item.number);
  if (!why_not.empty()) throw usage_error("--devices " + item.name() + ": " + why_not);
  return *calls;
}

/// The GPUs of a list, started together: each knows whom it can copy to.
class ListedGpus {
 public:
  ListedGpus(std::span<const DeviceItem> devices, const DeviceRequest& request) {
    for (const DeviceItem& item : devices) {
      addresses_.emplace_back();
      if (item.kind != DeviceKind::cuda || request.described != nullptr) continue;
      calls_ = &cuda_for(item);
      CudaDeviceInfo info;
      if (calls_->device_info(item.number, &info) == kCudaOk) addresses_.back() = info.bus_id;
      CudaDeviceOptions& gpu = options_.emplace_back();
      gpu.number = item.number;
      gpu.budget = request.gpu_memory;
    }
    if (options_.empty()) return;
    started_ = make_cuda_devices(*calls_, options_);
    for (const std::string& note : started_.notes) log_info(note);
  }
  /// PCI addresses in the order of the list; empty: no GPU, or unknown.
  std::span<const std::string> addresses() const { return addresses_; }
  ComputePlace take_next() {
    ComputePlace place;
    place.device = std::move(started_.devices[next_++]);
    place.budget.name = place.device->name();
    place.host_reaches = place.device->host_reaches();
    log_warning(place.budget.name +
                ": the GPU code of this version has run on an emulator only, not yet on a GPU; "
                "scripts/gpu_check compares its results with the CPU's (docs/gpu.md)");
    place.ops = &find_op_set(back_end().ops);
    check_libraries_of(place);
    place.budget.remedy = "--gpu-memory {}";
    place.memory = SpaceKind::device;
    return place;
  }

 private:
  CudaCalls* calls_ = nullptr;
  std::vector<CudaDeviceOptions> options_;
  std::vector<std::string> addresses_;
  CudaDevices started_;
  size_t next_ = 0;
};

ComputePlace virtual_place(const DeviceItem& item, VirtualOptions options, const PlaceSeat& seat,
                           const DeviceRequest& request, const ListedTables& tables) {
  ComputePlace place;
  place.seat = seat;
  place.costs = tables.of(item);
  if (request.described != nullptr) take_described_table(place, *request.described, options.name);
  if (place.costs) take_links(*place.costs, item.keys, options);
  if (request.described != nullptr) take_described_links(options, seat, *request.described);
  take_nominal_links(options, seat);
  if (options.workers > 0) place.teams = {{options.workers, options.cores}};
  if (!request.bind) {
    options.workers = std::max<int>(options.workers, static_cast<int>(options.cores.size()));
    options.cores.clear();
  }
  place.device = make_virtual_device(options);
  place.budget.name = place.device->name();
  place.host_reaches = place.device->host_reaches();
  place.ops = &find_op_set("cpu");
  const std::string rank = std::to_string(request.rank);
  place.budget.remedy =
      (request.rank < 0 ? "--devices " : "--rank-devices " + rank + "=") + request.devices;
  place.budget.in_list = static_cast<size_t>(item.number);
  place.shrink = item.keys.shrink;
  place.memory = SpaceKind::device;
  return place;
}

/// What plans of GPUs ask; null: this program knows nothing of them.
const OpSet* planned_ops() {
  if (back_end().planned != nullptr) return back_end().planned;
  const auto& sets = op_sets();
  const auto found = std::ranges::find(sets, back_end().ops, &OpSet::name);
  return found != sets.end() ? *found : nullptr;
}

std::vector<DeviceItem> read_list(const std::string& text) {
  try {
    return parse_device_list(text);
  } catch (const Error& e) {
    throw Error(e.code(), std::string("--devices: ") + e.what());
  }
}

bool has_gpu(const std::vector<DeviceItem>& items) {
  return std::ranges::any_of(items,
                             [](const DeviceItem& item) { return item.kind == DeviceKind::cuda; });
}

void warn_of_idle_gpu_memory(const std::vector<DeviceItem>& items) {
  if (has_gpu(items)) return;
  log_warning("--gpu-memory has no effect: --devices names no GPU");
}

void take_budget(ComputePlace& place) {
  for (const MemorySpace& space : place.device->spaces()) {
    if (space.kind == place.memory) place.budget.bytes = space.budget;
  }
}

ComputePlace started(const DeviceItem& item, const PlaceSeat& seat, const VirtualShares& shares,
                     ListedGpus& gpus, const DeviceRequest& request, const ListedTables& tables) {
  if (item.kind == DeviceKind::virtual_device) {
    return virtual_place(item, shares.devices[static_cast<size_t>(item.number)], seat, request,
                         tables);
  }
  if (request.described != nullptr) return described_gpu(item, seat, request, planned_ops());
  ComputePlace place = gpus.take_next();
  place.seat = seat;
  return place;
}

/// A NUMA node as a place; the first is the host itself, whose budget is the process's.
ComputePlace host_place(const HostNode& node, const RunDevices& run, const DeviceRequest& request) {
  // The plan checks the host's budget; the device holds reservations to the machine.
  constexpr uint64_t kAny = std::numeric_limits<uint64_t>::max();
  const int bound = node.bind ? node.number : -1;
  ComputePlace place;
  place.ops = &find_op_set("cpu");
  place.memory = SpaceKind::host;
  place.seat = {"", node.package, {node.number}};
  place.seat.memory = node.memory;
  if (run.places.empty()) {
    place.budget = {"host", request.host_budget, "--cpu-memory {}"};
    place.device = make_host_device(kAny, "host", bound);
    return place;
  }
  const uint64_t memory = node.memory > 0 ? node.memory : kAny;
  place.budget = {"host:" + std::to_string(node.number), memory, "--cpu-memory {}"};
  place.device = make_host_device(kAny, place.budget.name, bound);
  return place;
}

/// Gives the table of an item to its node, or to all of them.
void take_table(RunDevices& run, std::span<const HostNode> nodes, const DeviceItem& item,
                const ListedTables& tables) {
  for (size_t at = 0; at < nodes.size(); ++at) {
    if (item.number != kAllNodes && item.number != nodes[at].number) continue;
    run.places[at].costs = tables.of(item);
  }
}

/// Notes which CPUs the streams of each place have. Without binding, that is all they are told.
void note_cpus(RunDevices& run, bool bind) {
  for (ComputePlace& place : run.places) {
    for (StreamTeam& team : place.teams) {
      place.cpus.insert(place.cpus.end(), team.cores.begin(), team.cores.end());
      if (!bind) team.cores.clear();
    }
    std::sort(place.cpus.begin(), place.cpus.end());
    place.cpus.erase(std::unique(place.cpus.begin(), place.cpus.end()), place.cpus.end());
  }
  if (!bind) run.cores.clear();
}

Travel travel_of(const std::string& policy) {
  if (policy == "gpipe-offload") return Travel::on_demand;
  const bool ahead = policy == "mobius" || policy == "roundpipe" || policy == "aptmoe";
  return ahead ? Travel::ahead : Travel::never;
}

/// Whether the host's workers compute a part of the model: its own, or that of a device without cores.
bool host_computes(std::span<const DeviceItem> items, const DeviceRequest& request) {
  return travel_of(request.policy) != Travel::never ||
         std::ranges::any_of(items, [](const DeviceItem& item) {
           return item.kind == DeviceKind::virtual_device ? item.keys.cores == 0
                                                          : item.kind != DeviceKind::cuda;
         });
}

/// The host's workers are those of its nodes, whose items may ask for other counts.
void take_workers(RunDevices& run, std::span<const HostNode> nodes) {
  int workers = 0;
  bool bound = true;
  std::vector<int> cpus;
  for (const HostNode& node : nodes) {
    workers += node.workers;
    bound = bound && !node.cpus.empty();
    cpus.insert(cpus.end(), node.cpus.begin(), node.cpus.end());
  }
  if (workers == run.workers) return;
  run.workers = workers;
  run.cores = bound ? std::move(cpus) : std::vector<int>{};
}

const Planner& planner_for(const DeviceRequest& request, size_t devices, bool with_host) {
  const bool policy = request.policy == "static";
  const bool needs_host = policy || request.policy == "aptmoe";
  // Layer by layer: a pipeline of one stage would load all weights again for each micro-batch.
  const bool travels = travel_of(request.policy) != Travel::never;
  const bool pipeline =
      request.parallel.empty() ? policy || devices > 1 : request.parallel == "pipeline";
  const std::string given = request.parallel.empty() || travels ? "--policy " + request.policy
                                                                : "--parallel " + request.parallel;
  if ((pipeline || travels) && devices == 0) {
    throw usage_error("{}: --devices {} names no device; name at least one beside the host", given,
                      quoted(request.devices));
  }
  if (needs_host && !with_host) {
    throw usage_error(
        "--policy {}: --devices {} does not list host, which computes the experts that devices "
        "do not; add host",
        request.policy, quoted(request.devices));
  }
  if (!pipeline && policy) {
    throw usage_error("{}: --policy {} needs a pipeline; leave --parallel out", given,
                      request.policy);
  }
  if (!pipeline && devices > 1) {
    throw usage_error("{}: --devices {} names {} devices; leave --parallel out, or name one", given,
                      quoted(request.devices), devices);
  }
  const bool of_ranks = request.parallel == "dp" || request.parallel == "ep" ||
                        request.parallel == "hybrid-ep" || request.parallel == "zebra";
  return planner_of(pipeline ? "pipeline" : of_ranks ? request.parallel : "single");
}

}  // namespace

std::vector<Place> ModelPlaces::all() const {
  std::vector<Place> places = dense;
  for (const Place place : experts) {
    if (std::find(places.begin(), places.end(), place) == places.end()) places.push_back(place);
  }
  return places;
}

void set_cuda_back_end(const CudaBackEnd& given) { back_end() = given; }

bool finds_gpus() {
  std::string why_not;
  return find_cuda(why_not) != nullptr;
}

std::vector<GpuAddress> gpu_addresses(const std::string& devices) {
  std::vector<GpuAddress> found;
  for (const DeviceItem& item : parse_device_list(devices)) {
    if (item.kind != DeviceKind::cuda) continue;
    std::string why_not;
    CudaCalls* const calls = find_cuda(why_not);
    CudaDeviceInfo info;
    if (calls == nullptr || calls->device_info(item.number, &info) != kCudaOk) continue;
    if (!info.bus_id.empty()) found.push_back({item.name(), info.bus_id});
  }
  return found;
}

bool is_one_gpu(const std::string& devices) {
  return parse_device_list(devices).size() == 1 && gpu_addresses(devices).size() == 1;
}

bool names_gpu(const std::string& devices) { return has_gpu(read_list(devices)); }

std::vector<std::string> RunDevices::names() const {
  std::vector<std::string> names;
  for (const ComputePlace& place : places) names.push_back(place.budget.name);
  return names;
}

RunDevices open_devices(const DeviceRequest& request) {
  RunDevices run;
  const std::vector<DeviceItem> items = read_list(request.devices);
  if (request.gpu_memory > 0) warn_of_idle_gpu_memory(items);
  const ListedTables tables(items);
  const Topology topology = request.topology != nullptr ? *request.topology : Topology{};
  check_asked_cores(items, std::max(topology.cores.size(), request.cores.size()));
  // Nodes that the list leaves out take their workers with them.
  VirtualShares shares = share_host(items, cpus_of_listed_nodes(items, topology, request.cores),
                                    request.workers, host_computes(items, request));
  if (!shares.warning.empty()) log_warning(shares.warning);
  run.cores = std::move(shares.host_cpus);
  run.workers = shares.host_workers;
  const std::vector<HostNode> nodes = host_nodes(items, topology, run.cores, run.workers);
  take_workers(run, nodes);
  for (const HostNode& node : nodes) run.places.push_back(host_place(node, run, request));
  if (request.whole_memory) {
    uint64_t& bytes = run.places.front().budget.bytes;
    bytes = memory_of_listed_nodes(items, topology, bytes);
  }
  run.hosts = static_cast<int32_t>(nodes.size());

  std::vector<DeviceItem> devices;
  bool with_host = false;
  for (const DeviceItem& item : items) {
    if (item.kind == DeviceKind::host) {
      with_host = true;
      take_table(run, nodes, item, tables);
    } else if (item.kind == DeviceKind::automatic) {
      if (request.described == nullptr) say_how_to_ask_for_a_gpu();
    } else {
      devices.push_back(item);
    }
  }
  if (request.described != nullptr) take_host_tables(run, *request.described);
  run.planner = &planner_for(request, devices.size(), with_host);
  if (!devices.empty()) run.of_model.dense.clear();
  ListedGpus gpus(devices, request);
  const std::vector<PlaceSeat> seats =
      device_seats(devices, topology, request.seats, gpus.addresses());
  for (size_t i = 0; i < devices.size(); ++i) {
    run.places.push_back(started(devices[i], seats[i], shares, gpus, request, tables));
    take_budget(run.places.back());
  }
  DeviceOrder order = order_of_stages(devices, seats);
  for (const size_t i : order.order) {
    run.of_model.dense.push_back(run.hosts + static_cast<Place>(i));
  }
  run.mapped = std::move(order.mapped);
  if (!request.policy.empty()) run.of_model.policy = request.policy;
  run.of_model.travel = travel_of(request.policy);
  const bool travels = run.of_model.travel != Travel::never;
  run.of_model.round_robin = request.policy == "roundpipe";
  run.of_model.foresight = request.foresight;
  run.of_model.may_divide = request.divide_experts;
  if (request.policy == "aptmoe") {
    run.of_model.divide =
        request.printed_equation ? DivideBy::printed_equation_1 : DivideBy::equation_1;
    run.of_model.experts = {kHostPlace};
  }
  if (devices.empty() ? run.hosts > 1 : with_host && !travels) {
    for (Place node = 0; node < run.hosts; ++node) run.of_model.experts.push_back(node);
    run.of_model.hot = !devices.empty();
  }
  assign_teams(run, nodes, topology);
  note_cpus(run, request.bind);
  return run;
}

}  // namespace hearth
