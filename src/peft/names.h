// Names of the tensors in a PEFT directory, and this program's metadata notes in their file.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "base/hash.h"
#include "checkpoint/safetensors.h"

namespace hearth {

inline constexpr std::string_view kAdapterPrefix = "base_model.model.";
inline constexpr std::string_view kLoraA = ".lora_A.weight";
inline constexpr std::string_view kLoraB = ".lora_B.weight";
/// PEFT nests a layer's two fused pairs: down is the outer pair, gate and up the inner pair.
inline constexpr std::string_view kInnerPair = ".base_layer";

inline constexpr const char* kAdapterConfig = "adapter_config.json";
inline constexpr const char* kAdapterWeights = "adapter_model.safetensors";

// Metadata of the weights file:
//   kBaseNote     digest of the base
//   kContentNote  digest of the file's own tensors
//   kRanksNote    ranks of zero-padded modules, a JSON object (0: no pair)
//   kGateUpNote   kBlockDiagonal: gate and up do not share ranks
inline constexpr const char* kBaseNote = "hearth.base";
inline constexpr const char* kContentNote = "hearth.content";
inline constexpr const char* kRanksNote = "hearth.ranks";
inline constexpr const char* kGateUpNote = "hearth.gate_up";
inline constexpr const char* kBlockDiagonal = "block-diagonal";

/// The notes of a file. Input errors name `source` and the note.
struct AdapterNotes {
  std::optional<Digest> base, content;
  std::unordered_map<std::string, int64_t> ranks;  // by module
  bool block_diagonal = false;

  AdapterNotes(const SafetensorsHeader& header, const std::string& source);
};

}  // namespace hearth
