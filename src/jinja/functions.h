// The functions that every template may call.
#pragma once

#include <string>

#include "jinja/value.h"

namespace hearth::jinja {

using Function = Value (*)(Evaluator&, const Arguments& arguments);

/// By name (range, dict, namespace, ...); null for none.
Function find_function(const std::string& name);

}  // namespace hearth::jinja
