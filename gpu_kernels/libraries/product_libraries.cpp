#include "gpu_kernels/libraries/product_libraries.h"

#include <array>

namespace hearth::HEARTH_GPU {

LibraryList<ProductLibrary> product_libraries() {
  static const std::array<const ProductLibrary*, 1> list = {&cublaslt_library()};
  return list;
}

}  // namespace hearth::HEARTH_GPU
