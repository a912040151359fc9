// Faults that tests plant to prove that other tests catch them.
//
// Most faults need no product code: tests decorate bodies (layers/body.h), components of state
// (base/state_registry.h) and file calls (base/file_ops.h); tests/support/planted.h lists them.
// Only these call planted(), because no such seam can do the same: faults that skip a check or a wait
// of saved state, and surroundings that ranks of one process cannot have:
//
//   unchecked-chunks, unchecked-manifest, trust-newest   digests that a load compares
//   content-not-compared, option-change-ignored          content that a resume compares
//   update-does-not-wait, save-takes-changed-memory      waits that keep a save consistent
//   ranks-share-no-disk                                  thread ranks save and load as those of other hosts
//   rank-stops-at-start                                  a process stops itself before it meets the others
#pragma once

#include <string_view>

namespace hearth {

/// Whether this fault is planted. Always false in the released program: only test programs link a
/// definition that can return true (tests/support/planted.cpp).
bool planted(std::string_view fault);

}  // namespace hearth
