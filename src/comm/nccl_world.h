// Ranks that each compute on a GPU of their own, and send each other what lies in its memory.
#pragma once

#include <memory>

#include "comm/nccl_calls.h"
#include "comm/world.h"
#include "device/device.h"

namespace hearth {

/// The ranks of `hosts`, of which each has a CUDA device of its own. Messages start and end in the
/// memory of devices, and travel by NCCL; operations run on a stream of the communicator. Whoever
/// issues one has waited for what wrote its bytes. Messages without bytes are not sent, since both
/// sides know their sizes. Records of a checking world travel over `hosts`, and so do failures, signs of
/// life, and the identities with which groups meet.
///
/// Calls that fail end the run of all ranks with exit 6, naming this rank, call and operation. If another
/// rank fails, what is under way on the device is given up. `hosts`, `device` and `calls` must outlive
/// the world. Not for several threads: all groups are used by one thread at a time.
std::unique_ptr<World> make_nccl_world(World& hosts, Device& device, NcclCalls& calls);

}  // namespace hearth
