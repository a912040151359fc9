// The null twin: builds without cuDNN's headers, and the emulated kernels.
#include "gpu_kernels/libraries/attention_libraries.h"

namespace hearth::HEARTH_GPU {

const AttentionLibrary& cudnn_library() {
  static const Absent<AttentionLibrary> library("cuDNN", "this build is without it");
  return library;
}

}  // namespace hearth::HEARTH_GPU
