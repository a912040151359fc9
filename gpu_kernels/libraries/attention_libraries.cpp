#include "gpu_kernels/libraries/attention_libraries.h"

#include <array>

namespace hearth::HEARTH_GPU {

LibraryList<AttentionLibrary> attention_libraries() {
  static const std::array<const AttentionLibrary*, 1> list = {&cudnn_library()};
  return list;
}

}  // namespace hearth::HEARTH_GPU
