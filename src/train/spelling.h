// Another spelling of the same path is not a change of an option.
#pragma once

#include "state/run_identity.h"

namespace hearth {

/// Rewrites paths in the identity of a saved state. An option such as --model or --data may name
/// the same files by other paths: relative, through a link, with a trailing slash. Then the option
/// and its file names take the current spelling. Contents are still compared. Everything else stays
/// as saved.
RunIdentity in_current_spelling(RunIdentity saved, const RunIdentity& now);

}  // namespace hearth
