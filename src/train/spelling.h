// The same file in another spelling is not a change of an option.
#pragma once

#include "state/run_identity.h"

namespace hearth {

/// The identity of a saved state in the spelling of the current run. If an option such as --model or
/// --data names the same files by other paths (relative or absolute, through a link, with a trailing
/// slash), the option and the names of its files become the current ones. Contents are compared all
/// the same. Everything else stays as it was saved.
RunIdentity in_current_spelling(RunIdentity saved, const RunIdentity& now);

}  // namespace hearth
