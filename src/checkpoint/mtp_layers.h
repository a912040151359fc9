// Layers for multi-token prediction that a checkpoint stores behind the model's own, as
// model.layers.N (GLM, DeepSeek). They draft tokens for speculative decoding; transformers passes them
// over.
#pragma once

#include <functional>
#include <string>

#include "base/json.h"
#include "model/spec.h"

namespace hearth {

/// Whether a tensor is of such a layer: one of the `num_nextn_predict_layers` of config.json, or one
/// of which `stored` has `eh_proj`, the map of [embedding, hidden state] that no other layer has.
/// Input error for a count that is none.
bool is_of_mtp_layer(const std::string& tensor, const Json& config, const std::string& source,
                     const ModelSpec& spec, const std::function<bool(const std::string&)>& stored);

}  // namespace hearth
