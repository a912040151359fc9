// The null twin: builds without CUTLASS's headers.
#include "gpu_kernels/libraries/grouped_libraries.h"

namespace hearth::HEARTH_GPU {

const GroupedLibrary& cutlass_library() {
  static const Absent<GroupedLibrary> library("CUTLASS", "this build is without it");
  return library;
}

}  // namespace hearth::HEARTH_GPU
