// Assigns the tensors of a PEFT directory to modules. Only for reading adapters.
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

/// Open the files of a directory. Input error if a file is missing, is a pickle, or its reader
/// refuses it.
AdapterConfig open_adapter_config(const std::string& directory, bool follow_links);
SafetensorsFile open_adapter_weights(const std::string& directory, bool follow_links);

/// Input error, naming file and tensor, if the type is not F32, BF16 or F16.
void require_adapter_type(const SafetensorsFile& file, const SafetensorsEntry& entry);

struct AdapterTensors {
  /// A pair: the header entries of its A and B.
  struct Halves {
    int64_t a = -1, b = -1;
  };
  std::map<size_t, Halves> single;      // by module
  std::map<std::string, Halves> fused;  // a layer's experts, by name: outer or inner pair
  std::vector<std::pair<size_t, TensorId>> whole;  // entries, tensors of the model

  /// Input error, naming file and tensor, for a name or type that adapters do not have, a tensor
  /// without two dimensions, a matrix that the base does not have, half a pair, or a duplicate
  /// pair.
  AdapterTensors(const SafetensorsFile& file, const ParameterTable& table,
                 const std::vector<AdapterModule>& modules, const Checkpoint& base);

  /// PEFT stores the whole head beside the head's pair, and may store embeddings. Input error if
  /// such a tensor differs from the base.
  static void check_copy(const SafetensorsFile& file, const SafetensorsEntry& entry,
                         const std::string& name, const Checkpoint& base);
};

}  // namespace hearth
