// Where NVIDIA's libraries may lie that are opened when the program runs.
#pragma once

#include <span>
#include <string>
#include <vector>

namespace hearth::HEARTH_GPU {

/// What dlopen is to try for a library, in order: the bare name, for the system's loader
/// (LD_LIBRARY_PATH); the toolkit's usual folders; and, in the Python environments that are active
/// (VIRTUAL_ENV, CONDA_PREFIX), nvidia/<package>/lib of each of `packages`. But for the bare name, only
/// files that exist.
std::vector<std::string> library_candidates(const std::string& file,
                                            std::span<const char* const> packages);

/// Opens the first candidate that can be opened, never to be closed: its handle, and its name in
/// `found`. Null: there is none.
void* open_library(const std::string& file, std::span<const char* const> packages,
                   std::string& found);

}  // namespace hearth::HEARTH_GPU
