// The saved state that `export` converts, and what it says about its run. Private to src/train/.
#pragma once

#include <string>
#include <vector>

#include "data/chat/template_files.h"
#include "setup/reporter.h"
#include "state/saved_state.h"

namespace hearth {

/// A state, or the newest intact one of a run directory. Input error if there is none.
SavedState find_state_to_export(const std::string& path, Reporter& reporter);

/// The --model of the run that saved the state.
std::string model_of_state(const SavedState& state);

/// The chat templates that the run trained with, where they are not those of its base.
std::vector<TemplateSource> templates_of_state(const SavedState& state, Reporter& reporter);

}  // namespace hearth
