// Methods of dicts, lists and texts.
#pragma once

#include <string>

#include "jinja/value.h"

namespace hearth::jinja {

using Method = Value (*)(Evaluator&, const Value& self, const Arguments& arguments);

/// The method of a text, a list or a dict, or null. TemplateError for a Python method that is not
/// supported.
Method find_method(const Value& self, const std::string& name);
/// Whether a method of that name changes a list or a dict. Templates may not call these.
bool is_mutator(const Value& self, const std::string& name);

}  // namespace hearth::jinja
