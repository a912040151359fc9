// hearth tokenize --data: prints samples as the trainer reads them.
#pragma once

#include "options/options.h"

namespace hearth {

/// Prints JSON Lines with --json, else the text with trained parts marked (by colour on a
/// terminal). Prints each row as it is read.
void print_samples(const Options& options);

}  // namespace hearth
