// A world that checks another: all ranks issue the same operations, with the same sizes.
#pragma once

#include <memory>

#include "comm/world.h"

namespace hearth {

/// With each operation, its ranks send each other what they are about to do, pair by pair, on a
/// communicator of its own. If two of them differ, the run fails at all ranks (PeerFault::mismatch)
/// with a line that names both ranks, step, number and the field that differs. The operation is
/// under way meanwhile; `wait` and `reached` compare before they say that it has ended. The world
/// below may notice a difference first, in the messages themselves. `sent_bytes` counts the payload
/// alone.
std::unique_ptr<World> make_checking_world(std::unique_ptr<World> world);

}  // namespace hearth
