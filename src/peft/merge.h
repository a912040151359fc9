// A checkpoint whose matrices have their adapters added.
#pragma once

#include <string>

#include "base/pool.h"
#include "checkpoint/checkpoint.h"
#include "model/parameter_table.h"

namespace hearth {

/// Writes W + scale * B A as a checkpoint in the names, types, shapes, order and shard plan of
/// `base`, with config.json, index and companion files copied (less `changes`). W is read from the base's files, in
/// pieces, so the table needs no memory but that of its adapters and of what was trained beside
/// them (trainable; written from its home), as LoadedAdapter has. Computed in f32, rounded once to
/// the stored type. The result is read back and compared before it appears: every adapted tensor
/// equals what was computed anew, all else the base. `directory` and errors as with
/// write_checkpoint; a merged weight that is not finite is a numeric error.
void write_merged(const ParameterTable& table, const Checkpoint& base, const Pool& pool,
                  const std::string& directory, const FileChanges& changes = {});

}  // namespace hearth
