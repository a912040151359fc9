// What programs that load PEFT directories make of one, for people.
#pragma once

#include <string>
#include <vector>

#include "peft/adapter.h"

namespace hearth {

/// Which versions the directory of a table's adapters was checked with, and what others lose of it
/// (docs/adapters.md, "Versions of PEFT"). Lines.
std::vector<std::string> reader_notes(const ParameterTable& table, AdapterLayout layout);

}  // namespace hearth
