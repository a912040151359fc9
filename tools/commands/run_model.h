// `--model RUN`, `--adapter RUN` and an adapter without --model: the result of a run as a model.
#pragma once

#include "options/options.h"

namespace hearth {

/// If --model is a run directory, replaces it by the run's result: its model/, or the base of its
/// adapter/ with --adapter. If --adapter is a run directory, replaces it by its adapter/. An adapter
/// alone, as either option, stands on the base that it names; `model_name` is then this name. Usage
/// error for a run with an adapter beside another --adapter; input error if the run has no result
/// yet, or if the base of its adapter is not there.
void take_run(Options& options);

}  // namespace hearth
