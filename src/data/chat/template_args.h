// Variables that the user gives to chat templates (--template-args).
#pragma once

#include <string>
#include <vector>

#include "base/json.h"

namespace hearth {

/// "NAME=VALUE" texts as an object of values: true and false (in any case), numbers, JSON texts in
/// quotes; anything else is a text. Usage error for a name that is no variable of the template
/// language, for one that the chat itself sets, and for a name given twice.
Json template_args(const std::vector<std::string>& texts);

/// The template with these values as defaults of its variables, so that whoever renders it without
/// them gets what it was trained with. A renderer's own values win.
std::string with_defaults(const std::string& source, const Json& args);

}  // namespace hearth
