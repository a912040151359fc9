// libcudnn, loaded at run time, so that the program also starts without it.
#pragma once

#include <cstdint>
#include <string>

namespace hearth::HEARTH_GPU {

struct Cudnn {
  void* library = nullptr;
  int64_t version = 0;              // cudnnGetVersion(): 91900 is 9.19.0
  std::string problem;              // why it is not used; empty: it is used
  std::string found;                // the library's file
  std::string no_ordered_backward;  // why it is unavailable; empty: it is available
};

/// Loaded at the first call (library_search.h), with the CUDA runtime and the run-time compiler
/// that cuDNN and its frontend call. Versions that are too old or known to be broken are not used.
const Cudnn& cudnn();

/// First version, of both library and compiled header, whose ordered backward (sums in a fixed
/// order) has a workspace linear in the rows. Before, it was quadratic.
constexpr int64_t kCudnnOrderedBackward = 92500;

}  // namespace hearth::HEARTH_GPU
