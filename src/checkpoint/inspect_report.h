// The output of `inspect` for a checkpoint.
#pragma once

#include <string>

#include "base/json.h"
#include "checkpoint/inspect.h"

namespace hearth {

/// For people: sizes, a table with one line per group, and a table of tensors. Tensors that differ
/// only by layer or expert share a line.
std::string inspection_text(const Inspection& inspection);
Json inspection_json(const Inspection& inspection);

}  // namespace hearth
