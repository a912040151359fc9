// libcudnn, loaded when the program runs: the program starts where it is absent.
#pragma once

#include <cstdint>
#include <string>

namespace hearth::HEARTH_GPU {

struct Cudnn {
  void* library = nullptr;
  int64_t version = 0;              // as cudnnGetVersion says it: 91900 is 9.19.0
  std::string problem;              // why it is not used; empty: it is
  std::string found;                // the file
  std::string no_ordered_backward;  // why there is none, empty: there is
};

/// Loaded at the first call, from where library_search.h looks, together with the CUDA runtime that its
/// frontend calls and the compiler that it asks. Versions that are too old or known as broken are not
/// used.
const Cudnn& cudnn();

/// From this version on, of the library and of the header that the frontend was compiled with, the
/// backward whose sums have a fixed order has a workspace that grows with the rows, no longer with their
/// square.
constexpr int64_t kCudnnOrderedBackward = 92500;

}  // namespace hearth::HEARTH_GPU
