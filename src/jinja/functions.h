// The functions that every template may call.
#pragma once

#include <string>

#include "jinja/value.h"

namespace hearth::jinja {

using Function = Value (*)(Evaluator&, const Arguments& arguments);

/// The function of this name (range, dict, namespace, ...), or null.
Function find_function(const std::string& name);

}  // namespace hearth::jinja
