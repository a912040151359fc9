// What a model directory says about a model whose weights need not be there: config.json and, if it
// is there, model.safetensors.index.json. Enough to plan a run before the download.
#pragma once

#include <cstdint>
#include <string>

#include "model/family.h"
#include "model/published_layout.h"

namespace hearth {

struct ModelDescription {
  const Family* family = nullptr;
  ModelSpec spec;
  ParameterTable table;     // of the published layout, with the stored types
  PublishedLayout layout;   // as the index names tensors; experts one by one without an index
  std::string types_basis;  // what the stored types rest on, for people
};

/// Whether the directory lacks weights: neither model.safetensors, nor every shard that its index
/// names, nor weights in another format (which a run would refuse by name).
bool weights_are_absent(const std::string& directory);

/// Stored types come from the index's total_size where it has one (2 or 4 bytes a parameter), else
/// from config.json (dtype or torch_dtype), else they are f32 as transformers takes them. Input
/// errors name file and key.
ModelDescription describe_model(const std::string& directory, bool follow_links);

}  // namespace hearth
