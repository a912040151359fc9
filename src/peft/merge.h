// Merges adapters into a checkpoint.
#pragma once

#include <string>

#include "base/pool.h"
#include "checkpoint/checkpoint.h"
#include "model/parameter_table.h"

namespace hearth {

/// Writes W + scale * B A as a checkpoint with the names, types, shapes, order and shards of
/// `base`. Copies config.json, the index and companion files, with `changes`. Reads W from the
/// base's files in pieces. So the table needs memory only for adapters and other trained tensors
/// (written from their homes), as in LoadedAdapter. Computes in f32, rounds once to the stored
/// type. Before the result appears, it is read back: adapted tensors must equal a second
/// computation, and all other tensors must equal the base. `directory` and errors as in
/// write_checkpoint. Numeric error if a merged weight is not finite.
void write_merged(const ParameterTable& table, const Checkpoint& base, const Pool& pool,
                  const std::string& directory, const FileChanges& changes = {});

}  // namespace hearth
