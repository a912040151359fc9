// Whether a program has code for a GPU.
#pragma once

#include <string>
#include <string_view>

namespace hearth {

/// Why a GPU of this compute capability runs none of the code of these architectures, empty: it does.
/// architectures: as CMake takes them, commas between ("80-real,90a-real,90-virtual"): machine code
/// runs on its major version from its minor on (with a letter: on that version alone), PTX (virtual)
/// on its version and later ones; without an ending both. Empty: nothing is known, so nothing said.
/// Source: CUDA C++ Programming Guide, "Application Compatibility".
std::string missing_cuda_code(std::string_view architectures, int major, int minor);

}  // namespace hearth
