// Shows one sample of the data before step 1, with its trained parts marked.
#pragma once

#include "data/samples/row_set.h"
#include "setup/config.h"
#include "setup/reporter.h"

namespace hearth {

/// Notes the first row with trained tokens, shortened, with trained spans in brackets; without
/// tokenizer files, its ids. Then checks the first kRowsSeen rows, except cut rows and input_ids
/// rows. Warns if in none of them the trained part ends with `end_ids` or the tokenizer's end
/// token. Such a model would never stop.
void preview_samples(const RowSet& rows, const RunConfig& config,
                     const std::vector<int64_t>& end_ids, Reporter& reporter);

}  // namespace hearth
