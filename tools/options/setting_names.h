// The user's spelling of settings, for messages of src/.
#pragma once

#include <string>

#include "base/setting.h"

namespace hearth {

/// The name of the option, without dashes.
std::string option_of(Setting setting);
/// The flag: "--seq-len". `main` passes this function to spell_settings_by.
std::string flag_of(Setting setting);

}  // namespace hearth
