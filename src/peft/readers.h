// Notes for people about programs that load PEFT directories.
#pragma once

#include <string>
#include <vector>

#include "peft/adapter.h"

namespace hearth {

/// Lines that say which versions were tested with such a directory, and what other versions lose
/// (docs/adapters.md, "Versions of PEFT").
std::vector<std::string> reader_notes(const ParameterTable& table, AdapterLayout layout);

}  // namespace hearth
