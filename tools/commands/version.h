// hearth --version: what was built, what it runs on, and the libraries in use.
#pragma once

#include <string>

namespace hearth {

/// What `hearth --version` prints.
std::string version_text();

}  // namespace hearth
