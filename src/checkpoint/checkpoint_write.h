// Writes a result: the base's files with new weights.
#pragma once

#include <string>

#include "checkpoint/checkpoint.h"
#include "checkpoint/companion_files.h"
#include "model/parameter_table.h"

namespace hearth {

/// Writes the table's weights as a checkpoint with the names, types, shapes, order and shards of
/// `base`. Copies config.json, the index and companion files, with `changes`. Copies tensors of the
/// base that are not part of the model. Rounds once, from the master. `directory` must not exist
/// (usage error). It is written as .tmp-NAME beside the target, read back, compared and renamed,
/// durably. Numeric error if a weight is not finite in its stored type. A failure leaves nothing
/// behind.
void write_checkpoint(const ParameterTable& table, const Checkpoint& base,
                      const std::string& directory, const FileChanges& changes = {});

}  // namespace hearth
