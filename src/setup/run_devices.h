// Starts the devices of --devices, each with its op set.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "device/cuda_calls.h"
#include "device/device.h"
#include "device/device_list.h"
#include "modes/planner.h"
#include "ops/op_set.h"
#include "plan/cost_table.h"
#include "plan/decisions/foresight.h"
#include "runtime/stream_team.h"
#include "setup/described_machine.h"
#include "setup/place_budget.h"
#include "setup/place_seat.h"
#include "topology/topology.h"

namespace hearth {

/// A place of a run: its memory budget, device and op set.
struct ComputePlace {
  PlaceBudget budget;
  std::shared_ptr<Device> device;
  const OpSet* ops = nullptr;
  SpaceKind memory = SpaceKind::host;
  bool host_reaches = true;            // Device::host_reaches
  std::vector<StreamTeam> teams = {};  // of its compute streams, by lane
  PlaceSeat seat = {};
  std::shared_ptr<const CostTable> costs = {};  // times of its tasks; null: none
  bool paced = true;           // whether `costs` also paces the place; else it only predicts
  std::vector<int> cpus = {};  // of its compute streams, on the machine that is planned for
  std::optional<BudgetDrop> shrink = {};  // its budget falls
};

/// How the experts of a layer are divided between its device and the host while a step runs.
enum class DivideBy : uint8_t {
  home,                // not at all: each is computed where it lives
  equation_1,          // Equation 1 of APTMoE, corrected
  printed_equation_1,  // the same as the paper prints it
  makespan             // so that the last resource ends first
};

/// The places that may hold the parts of a model.
struct ModelPlaces {
  std::vector<Place> dense = {kHostPlace};  // all dense parts, or a stage at each
  std::vector<Place> experts = {};  // what routed experts are divided among; empty: as dense
  bool hot = false;  // devices take the hottest of these experts that fit beside their dense parts
  Travel travel = Travel::never;
  /// Stages go round the devices, and are cut apart for backward, which computes again what it needs.
  bool round_robin = false;
  DivideBy divide = DivideBy::home;
  std::string policy = "auto";  // as --policy has it
  Foresight foresight = {};     // of the rule: what loads ahead of it follow
  bool may_divide = false;      // an expert along its width, if the rule is the makespan's

  bool decides() const { return divide != DivideBy::home; }
  bool divides_experts() const { return may_divide && divide == DivideBy::makespan; }

  /// Every place that computes, once: those of the dense parts first.
  std::vector<Place> all() const;
  friend bool operator==(const ModelPlaces&, const ModelPlaces&) = default;
};

/// What models of the routers read, if they foretell what a rule divides.
inline SampledRows sampled_rows(const ModelPlaces& places) {
  const ForetoldBy by = places.decides() ? places.foresight.predictor : ForetoldBy::history;
  if (by == ForetoldBy::router) return SampledRows::router;
  return by == ForetoldBy::pre_attention ? SampledRows::layer : SampledRows::none;
}
inline bool foretells_by_routers(const ModelPlaces& places) {
  return sampled_rows(places) != SampledRows::none;
}

struct RunDevices {
  /// The host, its further NUMA nodes, then the devices in the order of the list.
  std::vector<ComputePlace> places;
  int32_t hosts = 1;  // places of the host
  ModelPlaces of_model;
  std::vector<StageDevice> mapped;   // the devices of the list, if their order was a choice
  const Planner* planner = nullptr;  // of the mode that runs the model
  std::vector<int> cores;            // logical CPUs of the host's workers; empty: unbound
  int workers = 1;                   // of the host, its streams' together

  /// Of the places, in order: "host", "cuda:0".
  std::vector<std::string> names() const;
};

/// How the program reaches CUDA, and its op set there. Tests set fakes.
struct CudaBackEnd {
  /// Returns null and sets the reason if CUDA is not available. Called only if a GPU is requested
  /// or searched for.
  CudaCalls* (*calls)(std::string& why_not) = nullptr;
  std::string_view ops;
  std::string_view architectures;  // with compiled code, in the format of `missing_cuda_code`
  /// Files that reveal an NVIDIA driver: of its kernel module, or in WSL.
  std::vector<std::string> driver_files = {"/proc/driver/nvidia/version", "/dev/dxg"};
  const OpSet* planned = nullptr;  // what plans of GPUs ask; null: `ops`
};
void set_cuda_back_end(const CudaBackEnd& back_end);
/// Whether this program can open GPUs here.
bool finds_gpus();

/// Whether a value of --devices names a GPU. Usage error for an invalid list.
bool names_gpu(const std::string& devices);

struct DeviceRequest {
  std::string devices = "auto";  // the value of --devices
  uint64_t gpu_memory = 0;       // limit per GPU in bytes; 0: the default
  uint64_t host_budget = 0;
  std::vector<int> cores;     // a CPU of each core that the run may use; empty: unbound
  int workers = 0;            // in all; 0: one per core
  std::string parallel = {};  // the mode; empty: by the policy and the number of devices
  bool printed_equation = false;
  bool divide_experts = false;
  Foresight foresight = {};
  std::string policy = {};  // which experts are at devices; empty: auto, as static
  Seats seats = Seats::keys;
  const Topology* topology = nullptr;  // of the machine; null: one NUMA node
  bool bind = true;  // false: `cores` are another machine's, so no worker is bound
  /// Plans for this machine: starts nothing, and asks this machine nothing.
  const DescribedMachine* described = nullptr;
  /// `host_budget` is all that the machine has: `host:N` items then have what their nodes have.
  bool whole_memory = false;
  int32_t rank = -1;  // that has these devices by --rank-devices; -1: they are of all
};

/// `auto` means `host`; if a driver reveals a GPU, a note says how to use it. A single device holds
/// the whole model, several hold a stage each. Devices and `host` keep the experts on the host.
/// Experts on the host are divided among its NUMA nodes. Reads the cost tables of the list; a virtual
/// device has the links of its table. With a described machine, tables that the list does not name
/// are the description's and only predict, and links without a rate have the described one. Usage error (2) for an invalid list or a missing device, with
/// the reason. Input error (3) if a table cannot be read. Device error (6) if a device does not
/// start.
RunDevices open_devices(const DeviceRequest& request);

}  // namespace hearth
