// Values with a grammar of their own.
#pragma once

#include <cstdint>
#include <string>

#include "options/option_values.h"

namespace hearth {

/// Steps of the warm-up; of a number below 1 it says that --warmup-ratio takes that.
OptionValue warmup_value(int64_t most);
/// 1; more are not in this version.
OptionValue logical_shards_value();
/// A list of devices, as device/device_list.h reads it.
OptionValue devices_value();
/// all, or the share of experts as top:25%; 0 for all.
OptionValue experts_value(double Options::*percent);
/// A day, YYYY-MM-DD.
OptionValue date_value(std::string Options::*member);
/// auto, never or a directory.
OptionValue resume_value();

}  // namespace hearth
