// What people see of the data before step 1: one sample with what is trained marked.
#pragma once

#include "data/samples/row_set.h"
#include "setup/config.h"
#include "setup/reporter.h"

namespace hearth {

/// Notes the first row (of a thousand) with trained tokens, shortened, its trained spans between
/// brackets; without tokenizer files, its ids. Warns when of these rows, as far as none was cut, not
/// one ends its last trained token with what ends a turn: `end_ids` or the tokenizer's own end token.
/// Such a model would never stop.
void preview_samples(const RowSet& rows, const RunConfig& config,
                     const std::vector<int64_t>& end_ids, Reporter& reporter);

}  // namespace hearth
