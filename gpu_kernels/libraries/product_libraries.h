// The ordered list of libraries for dense products; see libraries.h.
#pragma once

#include "gpu_kernels/kernels/product.h"
#include "gpu_kernels/libraries/libraries.h"

namespace hearth::HEARTH_GPU {

/// One product without groups: c [rows, columns] f32, see product.h for the forms. b is the weight or,
/// in wgrad, the second activations.
struct DenseProduct {
  Form form = Form::forward;
  Operand a, b;
  int64_t rows = 0, columns = 0, depth = 0;
  float* c = nullptr;
  int64_t c_stride = 0;
  bool accumulate = false;
};

using ProductLibrary = LibraryFor<DenseProduct>;

/// The libraries of this build, the preferred one first.
LibraryList<ProductLibrary> product_libraries();

/// cuBLASLt, searched for when the program runs; in builds without its header the null twin.
const ProductLibrary& cublaslt_library();

}  // namespace hearth::HEARTH_GPU
