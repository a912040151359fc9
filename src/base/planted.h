// Faults that tests plant to see that the other tests catch them.
#pragma once

#include <string_view>

namespace hearth {

/// True where the fault of this name is planted. In the program that users run nothing ever is: only
/// test programs link a definition that may say yes (tests/support/planted.h). The list of faults
/// is tests/reliability_faults.py's.
bool planted(std::string_view fault);

}  // namespace hearth
