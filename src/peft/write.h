// Writing a PEFT directory.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/hash.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/companion_files.h"
#include "model/parameter_table.h"
#include "peft/adapter.h"

namespace hearth {

struct AdapterFileOptions {
  AdapterLayout layout = AdapterLayout::per_expert;
  std::string base_name = {};              // base_model_name_or_path; empty: the base's directory
  std::string revision = {};               // of a model of the hub; empty: none was asked for
  std::optional<Digest> base_digest = {};  // where it is known already
  /// Lines of the card, README.md: what was trained, on what, how. Names and values.
  std::vector<std::pair<std::string, std::string>> card = {};
  FileChanges changes = {};  // of the base's companion files
};

/// Bytes of the tensors that write_adapter stores.
uint64_t adapter_bytes(const ParameterTable& table, const Family& family, AdapterLayout layout);

/// Writes the adapters of a table, which has their homes, as a PEFT directory: must not exist
/// (usage error), appears by one rename, durable, with the companion files of the base. f32, one
/// scale for all; experts of a layer get one rank (zeros fill up), and those without a pair zeros,
/// because loaders stack all of them. Tensors of the model that are trained beside adapters stand
/// there whole (modules_to_save). A value that is not finite is a numeric error.
void write_adapter(const ParameterTable& table, const Checkpoint& base,
                   const AdapterFileOptions& options, const std::string& directory);

}  // namespace hearth
