// What the ggml runtime calls a model of each family: architecture, metadata and tensors. The names, types
// and layouts are those that the ggml project's converter writes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "checkpoint/gguf_writer.h"
#include "model/parameter_table.h"

namespace hearth {

/// A tensor of the file and the tensors of the table that make it: one, or the matrices of all
/// experts of a layer, stacked.
struct GgufPart {
  GgufTensor tensor;
  std::vector<TensorId> parts;
  /// For q and k of the architecture "llama": the rows of each of this many heads are reordered, from
  /// two halves to pairs. Row 2 i + j of a head is its row j * head_dim / 2 + i. 0: as they are.
  int64_t paired_heads = 0;
};

/// "llama" (Mixtral), "olmoe", "qwen2moe" or "qwen3moe". Input error for another family.
std::string gguf_architecture(const ModelSpec& spec);

/// Raises an input error, which starts with `source`, for a model that the ggml runtime has no form for:
/// dense layers between those with experts, a clamp of q, k and v, biases that the architecture does
/// not have.
void require_gguf_form(const ModelSpec& spec, const std::string& source);

/// One sentence for each setting that the ggml runtime ignores, so that it computes something else: windows
/// of attention, combine weights that are divided or not.
std::vector<std::string> gguf_differences(const ModelSpec& spec);

/// Adds general.architecture and the keys of the architecture. `type`: of the matrices.
void add_gguf_model(const ModelSpec& spec, GgufType type, GgufMetadata& metadata);

/// The tensors in table order. Vectors and routers are f32; the other matrices have the type, or f16
/// if it is q8_0 and a row is not a whole number of blocks.
std::vector<GgufPart> gguf_parts(const ParameterTable& table, const ModelSpec& spec, GgufType type);

/// "8x7B" or "128x330M": experts, and the parameters of the model with one expert per layer.
std::string gguf_size_label(const ParameterTable& table, const ModelSpec& spec);

}  // namespace hearth
