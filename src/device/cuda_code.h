// Whether a program has code for a GPU.
#pragma once

#include <string>
#include <string_view>

namespace hearth {

/// Why a GPU of this compute capability cannot run any code of these architectures; empty: it can,
/// or the architectures are unknown. `architectures` is CMake's list with commas
/// ("80-real,90a-real,90-virtual").
///   -real     machine code: runs on its major version, from its minor version on
///   -virtual  PTX: runs on its version and later versions
///   no ending: both. With a letter ("90a"): runs only on that version.
/// Source: CUDA C++ Programming Guide, "Application Compatibility".
std::string missing_cuda_code(std::string_view architectures, int major, int minor);

}  // namespace hearth
