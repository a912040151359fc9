// The plan of a run: its schedules and all of its memory. A run that does not fit is refused before
// it reserves memory.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "budget/memory_line.h"
#include "modes/planner.h"
#include "plan/loader/loader_types.h"
#include "setup/cpu_share.h"
#include "setup/trained_model.h"

namespace hearth {

/// What a run requires of its plan.
struct PlanRequest {
  bool training = false;
  int64_t micro_batches = 1;                 // of a step, those of this rank
  RankShards shards = {};                    // of this rank
  std::vector<std::string> rank_hosts = {};  // by rank; empty: all of this process
  LinkRate rank_links = {};                  // of each of them, if they are threads
  CpuShare cpu_share = {};
  int64_t tokens = 0;         // upper bound per training micro-batch; 0: no training
  int64_t longest = 0;        // upper bound per sequence
  int64_t eval_tokens = 0;    // upper bound per evaluation micro-batch; 0: no evaluation
  int64_t decode_tokens = 0;  // most new tokens per call; 0: no decoding
  int64_t cache_rows = 0;
  std::optional<bool> recompute = {};  // unset: only if needed
  std::optional<int64_t> group = {};   // micro-batches per group; unset: the largest that fits
  /// PlanInput::inputs_on_host. Unset: if nothing fits otherwise, or if it spares loads of weights that
  /// are more bytes; never without recompute.
  std::optional<bool> inputs_on_host = {};
  /// The last layer of each stage but the last; empty: the cut that is found (plan_placement).
  std::vector<int32_t> stage_ends = {};
  /// Of `roundpipe`: the first layer of each stage of backward but the last, in their order.
  std::vector<int32_t> backward_ends = {};
  ZebraOrder zebra_order = {};  // PlanInput::zebra_order
  uint64_t data_bytes = 0;      // rows held in memory
  bool own_process = false;  // the run is in this process, so its program is as large as it is now
  std::string bounds_basis = "lengths of the data";  // source of `tokens` and `longest`; printed
  int64_t shortest = 1;  // the least sequence length that leaves enough trained tokens

  /// The same request, whose training schedule has the parameters of another one.
  PlanRequest scheduled_as(const TrainSchedule& train) const {
    PlanRequest same = *this;
    same.group = train.group;
    same.recompute = train.recompute;
    same.inputs_on_host = train.inputs_on_host;
    same.shards.expert_shift = train.expert_shift;
    same.zebra_order = train.zebra_order;
    if (!train.levels.empty()) same.shards.share(ExpertDomains(train.levels));
    same.shards.fetched_from = train.fetched_from;
    return same;
  }
};

/// Memory of the process when a plan is made.
struct ProcessMemory {
  uint64_t program = 0;  // resident bytes minus the data
  uint64_t data = 0;
  uint64_t peak = 0;     // so far
  bool measured = true;  // else what is usual
  uint64_t files = 0;    // of the program: pages of files
};
ProcessMemory measure_process(uint64_t data_bytes);
/// What the program takes, rounded up so that equal plans of runs to come have equal numbers. Which
/// pages of files are there differs by some hundred kB from start to start, as the system reads
/// around them: up to 18 MiB they count as that, which the program does not reach. The rest differs
/// by a page or two.
uint64_t repeatable_program_bytes(const ProcessMemory& process);
/// For plans of another machine: what the program usually takes, with the table of its model.
ProcessMemory usual_process(const ParameterTable& table, uint64_t data_bytes);

/// The model and machine of a plan. Refers to objects of the caller.
struct PlanSubject {
  const ModelSpec& spec;
  const RunSettings& settings;
  const ParameterTable& table;
  std::vector<ComputePlace> places;  // the host, then the devices of the run
  int32_t hosts = 1;                 // places of the host
  ModelPlaces of_model;
  const Planner* planner = nullptr;
  std::string types_basis;
  uint64_t opening_bytes = 0;
  int workers = 1;
  ProcessMemory process;
  ExpertCounts popularity = {};  // which experts devices take first; empty: unknown
  /// Where the split of a layer is decided while it runs: 1 for experts that its device is expected to
  /// compute, by layer and number (decided_splits.h).
  std::vector<std::vector<uint8_t>> expected = {};
  std::vector<Place> compute = {};           // PlanInput::compute
  std::vector<Place> compute_backward = {};  // PlanInput::compute_backward

  /// The same with another table.
  PlanSubject with_table(const ParameterTable& other) const {
    return {spec,     settings,   other,       places,        hosts,
            of_model, planner,    types_basis, opening_bytes, workers,
            process,  popularity, expected,    compute,       compute_backward};
  }
  PlaceBudget& host_budget() { return places[kHostPlace].budget; }
};

struct Plan {
  CopyPolicy policy;
  RankShards shards;
  std::vector<std::string> rank_hosts;  // PlanRequest::rank_hosts
  std::optional<TrainSchedule> train;
  std::optional<Schedule> drain;  // if the training schedule rotates
  std::optional<Schedule> eval;
  std::optional<Schedule> decode;
  std::vector<PlaceLines> places;  // the host, then the devices of the run
  /// By rank, from 1 on, and place: what they take of it for themselves (budget/rank_memory.h). Empty: not
  /// known, or there are none.
  std::vector<std::vector<PlaceLines>> others;
  /// By place: slots for blocks that live on the host; empty: none travel there.
  std::vector<std::vector<SlotClass>> slots;

  const PlaceLines& host() const { return places[kHostPlace]; }
  /// The first place with too little memory.
  std::optional<Place> short_place() const;
  bool fits() const { return !short_place(); }
  /// The schedules that exist.
  std::vector<const Schedule*> schedules() const;
};

/// The plan of a model whose blocks have their places. (budget/placement_plan.h places them.) A pure
/// function of its arguments. It takes the largest group whose plan fits, so a plan that
/// fits a budget fits every larger one. If the budget of the host is tight, the allowance may
/// shrink by up to 640 KiB, so a plan that needs P bytes also fits a budget of exactly P.
Plan make_plan(const PlanSubject& subject, const PlanRequest& request);

}  // namespace hearth
