// What `inspect` prints of a checkpoint.
#pragma once

#include <string>

#include "base/json.h"
#include "checkpoint/inspect.h"

namespace hearth {

/// For people: sizes, a table with a line a group, one with a line for the tensors of all layers and
/// experts that are alike.
std::string inspection_text(const Inspection& inspection);
Json inspection_json(const Inspection& inspection);

}  // namespace hearth
