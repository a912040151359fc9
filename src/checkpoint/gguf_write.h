// Writes a model as one GGUF file.
#pragma once

#include <string>

#include "checkpoint/gguf_model.h"
#include "checkpoint/weight_source.h"

namespace hearth {

/// Writes the weights of `source`, the model of `table` and `spec`, with this metadata. Reads and
/// converts in pieces of a few MiB. `path` must not exist (usage error): the file is written as
/// .tmp-NAME beside it, read back, compared and renamed, durably. Numeric error, naming the tensor,
/// for a weight that is not finite as `type`. A failure leaves nothing behind; so does a signal.
void write_gguf(WeightSource& source, const ParameterTable& table, const ModelSpec& spec,
                GgufType type, const GgufMetadata& metadata, const std::string& path);

}  // namespace hearth
