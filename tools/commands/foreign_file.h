// A configuration of another trainer: what that trainer does where the file is silent.
#pragma once

#include <vector>

#include "commands/given.h"

namespace hearth {

/// Adds the trainer's defaults to the options of `file`, and takes back those that the trainer would
/// not read: keys of adapters if none are trained, and of evaluations without rows for them. One note
/// names the trainer and the defaults. `flags` beat the file. `path`: of the file.
void complete_foreign_file(GivenPlace& file, const std::vector<Given>& flags,
                           const std::string& path);

}  // namespace hearth
