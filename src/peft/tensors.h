// The tensors of a PEFT directory by what they belong to. Not for use outside of reading.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "checkpoint/safetensors.h"
#include "peft/config.h"
#include "peft/modules.h"

namespace hearth {

/// The files of a directory. Input errors: missing, a pickle, what their readers refuse.
AdapterConfig open_adapter_config(const std::string& directory, bool follow_links);
SafetensorsFile open_adapter_weights(const std::string& directory, bool follow_links);

/// Input error naming file and tensor for another type than F32, BF16 and F16.
void require_adapter_type(const SafetensorsFile& file, const SafetensorsEntry& entry);

struct AdapterTensors {
  /// A pair: entries of its A and B in the header.
  struct Halves {
    int64_t a = -1, b = -1;
  };
  std::map<size_t, Halves> single;      // by module
  std::map<std::string, Halves> fused;  // experts of a layer, by name: outer, or inner (kInnerPair)
  std::vector<std::pair<size_t, TensorId>> whole;  // entries, tensors of the model

  /// Input errors name the file and the tensor: no name or type that adapters have, not two
  /// dimensions, no such matrix in the base, half a pair, a pair twice.
  AdapterTensors(const SafetensorsFile& file, const ParameterTable& table,
                 const std::vector<AdapterModule>& modules, const Checkpoint& base);

  /// PEFT stores the whole tensor beside the pair of a head, and may store embeddings. Input error
  /// if one is not the base's own.
  static void check_copy(const SafetensorsFile& file, const SafetensorsEntry& entry,
                         const std::string& name, const Checkpoint& base);
};

}  // namespace hearth
