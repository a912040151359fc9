// The plan of a run: its lists, and a line for every byte. What does not fit is refused before
// anything is reserved.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/parameter_memory.h"
#include "modes/single.h"
#include "setup/run_setup.h"

namespace hearth {

/// Memory of one use: estimate, what it rests on, and after the run what was measured. A basis
/// begins with its kind: derived (arithmetic on sizes that are known), measured (in this process),
/// data (from the lengths of the rows), policy (an allowance).
struct MemoryLine {
  std::string name;
  uint64_t bytes = 0;
  std::string basis;
  std::optional<uint64_t> measured = std::nullopt;
};

/// What is asked of a plan.
struct PlanRequest {
  bool training = false;
  int64_t micro_batches = 1;
  int64_t tokens = 0;         // bound of a training micro-batch, 0 = none
  int64_t longest = 0;        // bound of a sequence
  int64_t eval_tokens = 0;    // bound of an evaluation micro-batch, 0 = no evaluation
  int64_t decode_tokens = 0;  // new tokens at once, 0 = no decoding
  int64_t cache_rows = 0;
  std::optional<bool> recompute;  // unset: where it is needed
  std::optional<int64_t> group;   // micro-batches a group; unset: the largest that fits
  uint64_t data_bytes = 0;        // rows held in memory
  std::string bounds_basis = "lengths of the data";  // of tokens and longest
};

/// The process as it is when a plan is made.
struct ProcessMemory {
  uint64_t program = 0;  // resident, less the data
  uint64_t data = 0;
  uint64_t peak = 0;  // so far
};
ProcessMemory measure_process(uint64_t data_bytes);

/// A place that a plan may use.
struct PlanPlace {
  std::string name = "host";
  const OpSet* ops = nullptr;
  uint64_t budget = 0;  // bytes of its memory; of the host those of the process
  std::string more_memory = "--cpu-memory ";  // what the user gives it more by; a size follows
  bool host_reaches = true;                   // Device::host_reaches
};

/// What a plan is made for. Refers to objects of the caller. Blocks of the table are where they will
/// be in the run.
struct PlanSubject {
  const ModelSpec& spec;
  const RunSettings& settings;
  const ParameterTable& table;
  std::vector<PlanPlace> places;  // the host, then the devices of the run
  std::string types_basis;
  uint64_t opening_bytes = 0;
  int workers = 1;
  ProcessMemory process;

  PlanPlace& host() { return places[kHostPlace]; }
  const PlanPlace& host() const { return places[kHostPlace]; }
};
PlanSubject subject_of(const RunSetup& setup, const ProcessMemory& process);

/// The line of scratch, which a session measures.
inline constexpr const char* kScratchLine = "scratch of kernels";

/// What an arena took of a place's memory; the name is that of its lines.
struct MeasuredArena {
  MeasuredArena(std::string arena, uint64_t taken, Place at = kHostPlace)
      : name(std::move(arena)), bytes(taken), place(at) {}
  std::string name;
  uint64_t bytes = 0;
  Place place = kHostPlace;
};

/// What a run's memory was, by what the plan has lines for (train/session.h measures it).
struct MeasuredMemory {
  std::vector<MeasuredArena> arenas;
  uint64_t lists = 0;         // executors and their lists
  uint64_t read_buffers = 0;  // by which reading weights raised the peak
  uint64_t saving = 0;        // by which beginning a save raised it
  uint64_t peak = 0;          // of the process
};

/// The memory of a place in a plan.
struct PlacePlan {
  std::string name;  // "host", or that of the device
  std::vector<MemoryLine> lines;
  uint64_t peak = 0;  // sum of the lines: all of them live at once
  uint64_t budget = 0;
  std::string more_memory;  // PlanPlace
  std::optional<uint64_t> measured_peak = std::nullopt;
  bool fits() const { return peak <= budget; }
};

struct RunPlan {
  CopyPolicy policy;
  std::optional<SingleTrainPlan> train;
  std::optional<Schedule> eval;
  std::optional<Schedule> decode;
  std::vector<PlacePlan> places;  // the host, then the devices of the run
  const PlacePlan& host() const { return places[kHostPlace]; }
  /// The first place whose memory does not do.
  std::optional<Place> short_place() const;
  bool fits() const { return !short_place(); }

  /// The lists that exist.
  std::vector<const Schedule*> lists() const;
  /// Fills `measured` of every line, and the peaks.
  void grade(const MeasuredMemory& measured);
};

/// Where there are several, takes the first placement of the run's devices whose plan fits, the first
/// of all where none does (set_placement), and returns that plan; says on the log why earlier ones
/// were passed over. To be called when the table is complete, before the run is planned.
std::optional<RunPlan> place_run(RunSetup& setup, const PlanRequest& request);
/// Places the run and plans it, with the process as it is.
RunPlan make_run_plan(RunSetup& setup, const PlanRequest& request);
/// A pure function of its arguments. The allowance gives up to half of itself where the budget is
/// short, so that what was planned as P fits a budget of P.
RunPlan make_run_plan(const PlanSubject& subject, const PlanRequest& request);

/// Usage error unless the plan fits, with what is missing. Training names the change that fits
/// instead (budget/plan_changes.h).
void require_fit(const RunPlan& plan);
/// Whole MiB, rounded up.
std::string whole_mebibytes(uint64_t bytes);
/// "the plan needs 12 MiB of host memory and 10 MiB may be used", of every place that has too
/// little: else "of the memory of cuda:0".
std::string what_is_missing(const RunPlan& plan);

}  // namespace hearth
