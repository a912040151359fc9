// Generation as `hearth generate` runs it.
#pragma once

#include <functional>
#include <string>

#include "setup/config.h"
#include "setup/reporter.h"

namespace hearth {

/// Calls `emit` with each piece of new text (whole UTF-8 sequences); returns all new text. Raises
/// Error (base/error.h) with an exit code (docs/errors.md).
std::string generate(const GenerateConfig& config, Reporter& reporter,
                     const std::function<void(const std::string&)>& emit);

}  // namespace hearth
