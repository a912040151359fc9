// What a model is, whatever its directory and its weights.
#pragma once

#include "base/hash.h"
#include "setup/opened_model.h"

namespace hearth {

/// Of what config.json says of the computation, and of the stored tensors' names and sizes, without
/// adapters. Needs no weights.
Digest model_digest(const OpenedModel& model);

}  // namespace hearth
