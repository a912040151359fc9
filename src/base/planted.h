// Faults that tests plant to see that the other tests catch them.
//
// Most faults need nothing in the product: tests decorate bodies (layers/body.h), components of state
// (base/state_registry.h) and calls that reach files (base/file_ops.h); tests/support/planted.h lists
// where. What asks here is a check or a wait of saved state that a fault leaves out. Leaving out a
// check is no call, so no seam can do it:
//
//   unchecked-chunks, unchecked-manifest, trust-newest   digests that a load compares
//   content-not-compared, option-change-ignored          what a resume compares
//   update-does-not-wait, save-takes-changed-memory      what keeps a save whole beside the next step
#pragma once

#include <string_view>

namespace hearth {

/// Whether the fault of this name is planted. Always false in the program that users run: only test
/// programs link a definition that may return true (tests/support/planted.cpp).
bool planted(std::string_view fault);

}  // namespace hearth
