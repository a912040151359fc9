// Writing a result: the base's files with other weights.
#pragma once

#include <string>

#include "checkpoint/checkpoint.h"
#include "checkpoint/companion_files.h"
#include "model/parameter_table.h"

namespace hearth {

/// Writes the table's weights as a checkpoint in the names, types, shapes, order and shard plan of
/// `base`, with config.json, index and companion files copied (less `changes`), into `directory`: must
/// not exist (usage error), is written as .tmp-NAME beside it, read back and compared, and appears by one
/// rename, durable. Rounds once, from the master. Tensors of the base that are no part of the model
/// are copied. A weight that is not finite in its stored type is a numeric error. Failing leaves
/// nothing behind.
void write_checkpoint(const ParameterTable& table, const Checkpoint& base,
                      const std::string& directory, const FileChanges& changes = {});

}  // namespace hearth
