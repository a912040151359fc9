// Ranks that send each other what lies in the memory of their devices, without a copy at the host.
#pragma once

#include <memory>
#include <string>

#include "comm/world.h"
#include "device/device.h"

namespace hearth {

/// Why GPUs of this process cannot send to those of others; empty: they can (comm/nccl_calls.h).
/// `HEARTH_NCCL=OFF` in the environment forbids it.
std::string why_no_gpu_messages();

/// The ranks of `hosts`, each with one device. Messages start and end in the memory of these: by NCCL, or
/// if the host reaches the memory of the device (virtual devices), as those of `hosts` do. Operations are
/// checked (comm/checking_world.h), and counted apart from those of `hosts`. Both must outlive the world.
/// All ranks call it, with devices of one kind. Device error if there is no way.
std::unique_ptr<World> make_device_world(World& hosts, Device& device);

}  // namespace hearth
