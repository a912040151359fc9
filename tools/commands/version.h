// hearth --version: the build, the machine, and the libraries in use.
#pragma once

#include <string>

namespace hearth {

/// The output of `hearth --version`.
std::string version_text();

}  // namespace hearth
