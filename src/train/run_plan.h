// The plan of a run: its lists, and a line for every byte. What does not fit is refused before
// anything is reserved.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "model/parameter_memory.h"
#include "modes/single.h"
#include "plan/bound.h"
#include "train/run_setup.h"

namespace hearth {

/// Memory of one use: estimate, what it rests on, and after the run what was measured.
struct MemoryLine {
  std::string name;
  uint64_t bytes = 0;
  std::string basis;
  std::optional<uint64_t> measured = std::nullopt;
};

/// What is asked of a plan. Bounds come from the lengths of the data.
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
};

struct RunPlan {
  CopyPolicy policy;
  std::optional<SingleTrainPlan> train;
  std::optional<Schedule> eval;
  std::optional<Schedule> decode;
  std::vector<MemoryLine> memory;
  uint64_t peak = 0;  // sum of the lines: all of them live at once
  uint64_t budget = 0;
  bool fits() const { return peak <= budget; }

  /// The lists that exist.
  std::vector<const Schedule*> lists() const;

  /// Fills `measured`: arenas were reserved as planned, so what differs from the process's peak is
  /// the program's.
  void grade(uint64_t peak_bytes);
};

RunPlan make_run_plan(const RunSetup& setup, const PlanRequest& request);

/// What is missing, and the smallest change that would fit; empty if the plan fits.
std::string refusal(const RunPlan& plan, const RunConfig& config);
/// Raises that as a usage error.
void require_fit(const RunPlan& plan, const RunConfig& config);

/// What `plan --json` prints, and plan.json. `bound` and `time_s` for a step of full micro-batches.
Json plan_json(const RunPlan& plan, const RunSetup& setup, const StepBound& bound);
/// For people: memory by use, the list, the bound.
std::string plan_text(const RunPlan& plan, const RunSetup& setup, const StepBound& bound);

}  // namespace hearth
