// How a run reads its data: the options of rows, batches and the cache.
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

/// Warns of sequences that are longer than what the model was made for, and of a --seq-len that would
/// allow them. `longest` of the data, in tokens.
void warn_of_positions(const RunConfig& config, const ModelSpec& spec, int64_t longest);

/// How rows become samples. The vocabulary, by which ids in rows are checked, is left open.
RowOptions row_options(const RunConfig& config);

/// How the rows of a run are read, but for the files: format, template, length, cache, and hooks that
/// show progress and listen to signals.
RunRowsRequest rows_request(const RunConfig& config, const ModelSpec& spec, Reporter& reporter);

/// Packing and batch shape of the run.
SamplerOptions sampler_options(const RunConfig& config);
SamplerOptions sampler_options(const TrainConfig& config);

}  // namespace hearth
