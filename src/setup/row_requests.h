// Derives the options of rows, batches and the cache from the configuration.
#pragma once

#include "data/chat/chat_template.h"
#include "data/samples/run_rows.h"
#include "data/samples/sampler.h"
#include "model/spec.h"
#include "setup/config.h"
#include "setup/reporter.h"

namespace hearth {

/// Which chat template the run uses.
TemplateOptions template_options(const RunConfig& config);

/// Warns if the data or --seq-len have longer sequences than the model was trained for. `longest`:
/// longest sequence of the data, in tokens.
void warn_of_positions(const RunConfig& config, const ModelSpec& spec, int64_t longest);

/// How rows become samples. Does not set `vocabulary`.
RowOptions row_options(const RunConfig& config);

/// How the rows of a run are read: format, template, length, cache, and hooks for progress and
/// signals. Does not set `files`.
RunRowsRequest rows_request(const RunConfig& config, const ModelSpec& spec, Reporter& reporter);

/// Packing and batch shape.
SamplerOptions sampler_options(const RunConfig& config);
SamplerOptions sampler_options(const TrainConfig& config);

}  // namespace hearth
