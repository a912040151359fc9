// Describes a model whose weights may be absent, from config.json and, if present,
// model.safetensors.index.json. Enough to plan a run before the download.
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
  PublishedLayout layout;   // from the names in the index; per expert without an index
  std::string types_basis;  // how the stored types are known, for messages
};

/// Whether the directory lacks weights. It has weights if it has model.safetensors, every shard of
/// its index, or weights in another format, which a run refuses by name.
bool weights_are_absent(const std::string& directory);

/// The stored type is config.json's dtype or torch_dtype, else f32, like transformers. If the
/// index's total_size contradicts its size (2 or 4 bytes per parameter), the type is bf16 or f32.
/// Input errors name file and key.
ModelDescription describe_model(const std::string& directory, bool follow_links);

}  // namespace hearth
