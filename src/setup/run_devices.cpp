#include "setup/run_devices.h"
#include "device/host_device.h"

#include <algorithm>
#include <limits>

#include "base/file_ops.h"
#include "base/log.h"
#include "base/user_cache.h"
#include "device/cuda_code.h"
#include "device/cuda_device.h"
#include "device/device_list.h"
#include "ops/registry.h"
#include "runtime/library_check.h"
#include "setup/place_costs.h"

namespace hearth {
namespace {

constexpr Place kDevice = 1;  // of the one device beside the host

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
        "for the first GPU, --devices cuda:0,host leaves the experts to the host");
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

ComputePlace cuda_place(CudaCalls& calls, int number, const DeviceRequest& request) {
  CudaDeviceOptions options;
  options.number = number;
  options.budget = request.gpu_memory;
  CudaDevices started = make_cuda_devices(calls, {&options, 1});
  for (const std::string& note : started.notes) log_info(note);
  ComputePlace place;
  place.device = std::move(started.devices.front());
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

/// The list of --devices with another size of the virtual device. All else stays as it was written.
/// A path (costs=, always the last key) may read like anything else.
std::string list_with_memory(const std::string& list, const std::string& size) {
  size_t item = 0;
  while (list.compare(item, 7, "virtual") != 0) {
    const size_t count = list.find_first_not_of("0123456789", item);
    if (count > item && list.compare(count, 8, "xvirtual") == 0) {
      item = count + 1;
    } else {
      item = list.find(',', item) + 1;
    }
  }
  const size_t end = std::min(list.find(',', item), list.size());
  std::string keys = list.substr(item + 7, end - item - 7);
  const size_t mem = keys.find("mem="), path = keys.find("costs=");
  if (mem < path) {
    const size_t past = std::min(keys.find('/', mem), keys.size());
    keys.replace(mem, past - mem, "mem=" + size);
  } else {
    keys = ":mem=" + size + (keys.empty() ? "" : "/" + keys.substr(1));
  }
  return list.substr(0, item + 7) + keys + list.substr(end);
}

ComputePlace virtual_place(const DeviceItem& item, VirtualOptions options,
                           const DeviceRequest& request, const ListedTables& tables) {
  ComputePlace place;
  place.costs = tables.of(item);
  if (place.costs) take_links(*place.costs, item.keys, options);
  place.workers = static_cast<int>(options.cores.size());
  place.device = make_virtual_device(options);
  place.budget.name = place.device->name();
  place.host_reaches = place.device->host_reaches();
  place.ops = &find_op_set("cpu");
  place.budget.remedy = "--devices " + list_with_memory(request.devices, "{}");
  place.memory = SpaceKind::device;
  return place;
}

std::vector<DeviceItem> read_list(const std::string& text) {
  try {
    return parse_device_list(text);
  } catch (const Error& e) {
    throw Error(e.code(), std::string("--devices: ") + e.what());
  }
}

void warn_of_idle_gpu_memory(const std::vector<DeviceItem>& items) {
  for (const DeviceItem& item : items) {
    if (item.kind == DeviceKind::cuda) return;
  }
  log_warning("--gpu-memory has no effect: --devices names no GPU");
}

void take_budget(ComputePlace& place) {
  for (const MemorySpace& space : place.device->spaces()) {
    if (space.kind == place.memory) place.budget.bytes = space.budget;
  }
}

}  // namespace

void set_cuda_back_end(const CudaBackEnd& given) { back_end() = given; }

RunDevices open_devices(const DeviceRequest& request) {
  RunDevices run;
  run.cores = request.cores;
  // The plan checks the host's budget; the device holds reservations to the machine.
  run.places.push_back({{"host", request.host_budget, "--cpu-memory {}"},
                        make_host_device(std::numeric_limits<uint64_t>::max()),
                        &find_op_set("cpu"),
                        SpaceKind::host});
  const std::vector<DeviceItem> items = read_list(request.devices);
  if (request.gpu_memory > 0) warn_of_idle_gpu_memory(items);
  const ListedTables tables(items);
  std::vector<DeviceItem> devices;
  bool with_host = false;
  for (const DeviceItem& item : items) {
    if (item.kind == DeviceKind::host) {
      with_host = true;
      run.places[kHostPlace].costs = tables.of(item);
    }
    if (item.kind == DeviceKind::automatic) {
      say_how_to_ask_for_a_gpu();
    } else if (item.kind != DeviceKind::host) {
      devices.push_back(item);
    }
  }
  if (devices.size() > 1) {
    throw usage_error("--devices " + quoted(request.devices) +
                      ": more than one device beside the host is not in this version");
  }
  VirtualShares shares = share_host(items, std::move(run.cores));
  run.cores = std::move(shares.host_cpus);
  if (devices.empty()) return run;
  const DeviceItem& item = devices.front();
  if (item.kind == DeviceKind::virtual_device) {
    run.places.push_back(virtual_place(item, shares.devices.front(), request, tables));
  } else {
    std::string why_not;
    CudaCalls* calls = find_cuda(why_not);
    if (calls != nullptr) why_not = missing_code(*calls, item.number);
    if (!why_not.empty()) throw usage_error("--devices " + item.name() + ": " + why_not);
    run.places.push_back(cuda_place(*calls, item.number, request));
  }
  take_budget(run.places.back());
  run.placement = {kDevice, with_host ? kHostPlace : kDevice};
  return run;
}

}  // namespace hearth
