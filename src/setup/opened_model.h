// The first stage of a run: the model is open and the devices are started.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/log.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/hub_cache.h"
#include "peft/adapter.h"
#include "setup/config.h"
#include "setup/run_devices.h"
#include "topology/topology.h"

namespace hearth {

struct OpenedModel {
  std::shared_ptr<const Checkpoint> checkpoint;  // none without weights: planned from config.json
  ModelSpec spec;
  ParameterTable base;         // of the checkpoint, without adapters
  PublishedLayout layout;      // stored names and layout of the tensors, for users
  std::string types_basis;     // explanation of the stored types, for messages
  uint64_t opening_bytes = 0;  // the most memory that opening the checkpoint took
  Topology topology;
  std::shared_ptr<const DescribedMachine> described;  // what a plan is for; null: this machine
  int workers = 1;
  std::vector<int> cores;  // cores to bind workers to; empty if --threads is set
  RunDevices devices;
  std::shared_ptr<const AdapterFile> adapter;  // to run with, or to train further
  /// Warnings and notes of opening. Log them once the run is accepted: a refusal is one line.
  std::vector<HeldLine> said = {};

  const ComputePlace& place(Place at) const { return devices.places[static_cast<size_t>(at)]; }
};

/// Whether each place that computes has bf16 products in hardware.
bool has_bf16(const std::vector<ComputePlace>& places, const ModelPlaces& of_model);

/// Name of the model in files of the result.
ModelName model_name(const RunConfig& config);

enum class Weights : uint8_t { needed, may_be_absent };

/// Opens the checkpoint and the adapter, counts the workers and starts the devices. `plan` does not
/// need weights. Warnings are in `said`, not yet in the log.
std::shared_ptr<const OpenedModel> open_model(const RunConfig& config,
                                              Weights weights = Weights::needed);

/// The same model for another rank of this process, which shares all but the devices: those of
/// `config.devices` are started for it alone, and it has the host's memory and cores with the others. Its
/// warnings are not kept.
std::shared_ptr<const OpenedModel> opened_for_rank(const OpenedModel& model,
                                                   const RunConfig& config);

}  // namespace hearth
