// How the user writes the settings that messages of the rooms below speak of.
#pragma once

#include <string>

#include "base/setting.h"

namespace hearth {

/// The option that sets it, without dashes.
std::string option_of(Setting setting);
/// The flag: "--seq-len". What `main` gives to spell_settings_by.
std::string flag_of(Setting setting);

}  // namespace hearth
