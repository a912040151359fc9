// hearth tokenize --data: samples as the trainer sees them.
#pragma once

#include "options/options.h"

namespace hearth {

/// JSON Lines with --json, else for people: the text with what is trained marked (by colour on a
/// terminal). Row by row, as they are read.
void print_samples(const Options& options);

}  // namespace hearth
