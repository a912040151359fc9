// Generation as `hearth generate` runs it.
#pragma once

#include <cstdint>
#include <functional>

#include "setup/config.h"
#include "setup/reporter.h"
#include "train/text_generator.h"

namespace hearth {

/// Answers the prompt or the chat of --messages. Calls `emit` with each piece of new text. Raises
/// Error (base/error.h) with an exit code (docs/errors.md).
Answer generate(const GenerateConfig& config, Reporter& reporter, const EmitText& emit);

/// Answers each row of --data, in order, as if it were the only one. Calls `emit` with the number of
/// the row, from 1 over all files, and its answer. Reads and encodes all rows before the first
/// answer. Leaves out bad rows within --skip-bad-rows.
void generate_rows(const GenerateConfig& config, Reporter& reporter,
                   const std::function<void(int64_t row, const Answer&)>& emit);

}  // namespace hearth
