// The null twin: builds without cublasLt.h.
#include "gpu_kernels/libraries/product_libraries.h"

namespace hearth::HEARTH_GPU {

const ProductLibrary& cublaslt_library() {
  static const Absent<ProductLibrary> library("cuBLASLt", "this build is without it");
  return library;
}

}  // namespace hearth::HEARTH_GPU
