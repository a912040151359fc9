// model.safetensors.index.json: which shard holds which tensor.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hearth {

/// (tensor, file) in the order of the text.
using WeightMap = std::vector<std::pair<std::string, std::string>>;

/// Parses and checks an index. Input errors name `source` and the key: no or empty weight_map, keys
/// that come twice, values that are no plain names ending in .safetensors. Pure: the fuzz target
/// calls it.
WeightMap parse_weight_index(std::string_view text, const std::string& source);

/// An index as transformers writes it, tensors sorted by name.
std::string weight_index_text(WeightMap map, int64_t parameters, int64_t bytes);

}  // namespace hearth
