// Settings in messages are written as the program writes them.
#pragma once

#include "options/setting_names.h"

namespace hearth::test {

/// While it lives, `spelled` gives flags ("--seq-len"), not plain words.
struct SpelledAsFlags {
  SpelledAsFlags() { spell_settings_by(flag_of); }
  ~SpelledAsFlags() { spell_settings_by(nullptr); }
  SpelledAsFlags(const SpelledAsFlags&) = delete;
  SpelledAsFlags& operator=(const SpelledAsFlags&) = delete;
};

}  // namespace hearth::test
