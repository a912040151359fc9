// Writes a PEFT directory.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/hash.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/companion_files.h"
#include "checkpoint/model_card.h"
#include "model/parameter_table.h"
#include "peft/adapter.h"

namespace hearth {

struct AdapterFileOptions {
  AdapterLayout layout = AdapterLayout::per_expert;
  std::string base_name = {};              // base_model_name_or_path; empty: the base's directory
  std::string revision = {};               // of a hub model; empty: not given
  std::optional<Digest> base_digest = {};  // if already known
  /// Names and values for the card (README.md): what was trained, on what data, how.
  CardRows card = {};
  FileChanges changes = {};  // to the base's companion files
};

/// Bytes of the tensors that write_adapter stores.
uint64_t adapter_bytes(const ParameterTable& table, const Family& family, AdapterLayout layout);

/// Writes the adapters of a table, whose homes must be in memory, as a PEFT directory with the
/// base's companion files. `directory` must not exist (usage error); it appears by one rename,
/// durably. All tensors are f32 and share one scale. Loaders stack a layer's experts, so these get
/// one rank: smaller pairs are padded with zeros, and missing pairs are zeros. Other trained
/// tensors of the model are stored whole (modules_to_save). Numeric error if a value is not finite.
void write_adapter(const ParameterTable& table, const Checkpoint& base,
                   const AdapterFileOptions& options, const std::string& directory);

}  // namespace hearth
