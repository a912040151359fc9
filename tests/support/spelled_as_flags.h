// Spells settings in messages as the program does.
#pragma once

#include "options/setting_names.h"

namespace hearth::test {

/// RAII: `spelled` returns flags ("--seq-len") instead of plain words.
struct SpelledAsFlags {
  SpelledAsFlags() { spell_settings_by(flag_of); }
  ~SpelledAsFlags() { spell_settings_by(nullptr); }
  SpelledAsFlags(const SpelledAsFlags&) = delete;
  SpelledAsFlags& operator=(const SpelledAsFlags&) = delete;
};

}  // namespace hearth::test
