// Finds NVIDIA's libraries at run time.
#pragma once

#include <span>
#include <string>
#include <vector>

namespace hearth::HEARTH_GPU {

/// Names to try with dlopen, in order: the bare name, for the system's loader (LD_LIBRARY_PATH);
/// the toolkit's usual folders; nvidia/<package>/lib of each of `packages` in the active Python
/// environments (VIRTUAL_ENV, CONDA_PREFIX). Except for the bare name, only existing files.
std::vector<std::string> library_candidates(const std::string& file,
                                            std::span<const char* const> packages);

/// Opens the first candidate that can be opened. Returns its handle, which is never closed, and its
/// name in `found`. Null: none can be opened.
void* open_library(const std::string& file, std::span<const char* const> packages,
                   std::string& found);

}  // namespace hearth::HEARTH_GPU
