// Layers for multi-token prediction, which some checkpoints store after the model's own layers as
// model.layers.N (GLM, DeepSeek). They draft tokens for speculative decoding; transformers ignores
// them.
#pragma once

#include <functional>
#include <string>

#include "base/json.h"
#include "model/spec.h"

namespace hearth {

/// Whether a tensor belongs to such a layer. Either config.json counts the layer
/// (`num_nextn_predict_layers`), or the checkpoint stores the layer's `eh_proj`, the map of
/// [embedding, hidden state], which no other layer has. Input error if the count is invalid.
bool is_of_mtp_layer(const std::string& tensor, const Json& config, const std::string& source,
                     const ModelSpec& spec, const std::function<bool(const std::string&)>& stored);

}  // namespace hearth
