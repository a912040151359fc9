// The tensors of a PEFT directory by what they belong to. Not for use outside of reading.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "model/adapter_modules.h"
#include "model/checkpoint.h"
#include "model/safetensors.h"

namespace hearth {

struct AdapterTensors {
  /// A pair: entries of its A and B in the header.
  struct Halves {
    int64_t a = -1, b = -1;
  };
  std::map<size_t, Halves> single;      // by module
  std::map<std::string, Halves> fused;  // experts of a layer, by name: outer, or inner (kInnerPair)
  std::vector<std::pair<size_t, std::string>> copies;  // entries, tensors of the base they repeat

  /// Input errors name the file and the tensor: no name or type that adapters have, not two
  /// dimensions, no such matrix in the base, half a pair, a pair twice.
  AdapterTensors(const SafetensorsFile& file, const std::vector<AdapterModule>& modules,
                 const Checkpoint& base);

  /// PEFT stores whole tensors beside the pairs of a head, or of embeddings. Input error where one
  /// is not the base's own.
  void check_copies(const SafetensorsFile& file, const Checkpoint& base) const;
};

}  // namespace hearth
