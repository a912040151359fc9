// Runs of the program: training, evaluation, generation. Each reads a resolved configuration, and
// raises Error (base/error.h) with an exit code (docs/errors.md).
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "train/config.h"
#include "train/reporter.h"

namespace hearth {

/// Fine-tunes, or resumes. Returns the exit code: done, stopped (state saved) after a signal, or with
/// --strict numeric where the verdict on the run is an alarm.
ExitCode train(const TrainConfig& config, Reporter& reporter);

/// The plan that `train` would run: fits or not, memory lines, the printed list, the bound.
struct PlanReport {
  bool fits = false;
  std::string text;     // for people
  Json json;            // the keys of `plan --json`
  std::string refusal;  // empty if it fits; else what is missing and the smallest change
};
/// How much the text says of the list: a line for tasks of a kind, or one for every task.
enum class PlanDetail : uint8_t { kinds, tasks };
PlanReport plan_run(const TrainConfig& config, Reporter& reporter,
                    PlanDetail detail = PlanDetail::kinds);

/// What `eval --json` prints.
Json evaluate(const RunConfig& config, Reporter& reporter);

/// Calls `emit` with each piece of new text (whole UTF-8 sequences); returns the whole new text.
std::string generate(const GenerateConfig& config, Reporter& reporter,
                     const std::function<void(const std::string&)>& emit);

}  // namespace hearth
