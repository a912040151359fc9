// What every run fixes before it plans: model, parameter table, settings, cores; and how it reads
// its data.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/hub_cache.h"
#include "data/chat/chat_template.h"
#include "data/samples/run_rows.h"
#include "data/samples/sampler.h"
#include "model/adapters.h"
#include "peft/adapter.h"
#include "setup/config.h"
#include "setup/reporter.h"
#include "setup/run_devices.h"
#include "topology/topology.h"

namespace hearth {

struct RunSetup {
  std::optional<Checkpoint> checkpoint;  // none: planned from config.json, weights not there
  ModelSpec spec;
  ParameterTable table;        // not bound to memory yet
  PublishedLayout layout;      // how the checkpoint stores it: the names that users know
  std::string types_basis;     // what its stored types rest on, for people
  uint64_t opening_bytes = 0;  // memory that opening the model took at most
  RunSettings settings;
  Topology topology;
  int workers = 1;
  std::vector<int> cores;  // to bind workers to; empty when threads were asked for by number
  RunDevices devices;
  SinglePlacement placement;           // set_placement
  std::optional<AdapterFile> adapter;  // that the model is run with, or trained on from
  ComputeChoice compute_choice = ComputeChoice::automatic;

  const RunPlace& place(Place at) const { return devices.places[static_cast<size_t>(at)]; }
};

/// Puts the blocks of the table where the placement says and resolves the compute type by what
/// computes there: `auto` takes bf16 where each of these places has it in hardware and the
/// checkpoint is stored so. Opened with the first of the run's placements; to be called again when
/// the table was made anew, as set_trained does.
void set_placement(RunSetup& setup, const SinglePlacement& placement);

/// Opens the checkpoint and resolves compute type, threads and memory. For commands that do not
/// train. Warnings for people go to the log.
RunSetup prepare_run(const RunConfig& config);

/// The same for training: also marks what is trained, sets the optimizer and the auxiliary loss.
/// Usage errors for globs that match nothing, and for freezing everything.
RunSetup prepare_training(const TrainConfig& config);
/// The same for a plan: the weights need not be there.
RunSetup prepare_planning(const TrainConfig& config);

/// Marks trainable tensors of the model: all, then those matching a `--freeze` glob not, then those
/// matching a `--trainable` glob again; with `--trainable` alone, and beside adapters (`lora`), only
/// what it matches. Globs see the names of the checkpoint: one that matches fused experts matches
/// all experts of that layer.
void select_trainable(ParameterTable& table, const PublishedLayout& layout, bool lora,
                      const std::vector<std::string>& trainable,
                      const std::vector<std::string>& freeze);

/// Makes the table of a training run from the base's: marks what is trained, and adds adapters, of
/// experts to those of `experts` alone (empty: to all). Errors as prepare_training.
void set_trained(RunSetup& setup, const TrainConfig& config, const ExpertChoice& experts);

/// The names of the places that the run computes at, that of its dense parts first: "devices" of
/// plans and journals.
JsonArray devices_json(const RunSetup& setup);
/// "the host with 8 workers", "cuda:0", "cuda:0, experts on the host with 8 workers".
std::string places_text(const RunSetup& setup);

/// The name of the compute type in reports and in a run's identity.
const char* name_of(Compute compute);

/// Parameters of the model and of its adapters.
int64_t all_parameters(const ParameterTable& table);
/// Parameters that are trained.
int64_t trained_parameters(const ParameterTable& table);

/// The model as files of the result name it.
ModelName model_name(const RunConfig& config);

/// Which chat template the run uses.
TemplateOptions template_options(const RunConfig& config);

/// Warns of sequences that are longer than what the model was made for, and of a --seq-len that would
/// allow them. `longest` of the data, in tokens.
void warn_of_positions(const RunConfig& config, const ModelSpec& spec, int64_t longest);

/// How rows become samples. The vocabulary, by which ids in rows are checked, is left open.
RowOptions row_options(const RunConfig& config);

/// What the rows of a run are read by, but for the files: format, template, length, cache, and
/// hooks that show progress and listen to signals.
RunRowsRequest rows_request(const RunConfig& config, const RunSetup& setup, Reporter& reporter);

/// Packing and batch shape of the run.
SamplerOptions sampler_options(const RunConfig& config);
SamplerOptions sampler_options(const TrainConfig& config);

}  // namespace hearth
