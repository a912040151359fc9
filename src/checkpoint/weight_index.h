// model.safetensors.index.json: which shard holds which tensor.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hearth {

/// (tensor, file) in the order of the text.
using WeightMap = std::vector<std::pair<std::string, std::string>>;

/// Parses and checks an index. Input error, naming `source` and the key, for a missing or empty
/// weight_map, duplicate keys, and values that are not plain names ending in .safetensors. Pure:
/// the fuzz target calls it.
WeightMap parse_weight_index(std::string_view text, const std::string& source);

/// The text of an index like transformers', with tensors sorted by name.
std::string weight_index_text(WeightMap map, int64_t parameters, int64_t bytes);

}  // namespace hearth
