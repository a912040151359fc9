// The ordered list of libraries for dense products; see libraries.h.
#pragma once

#include "gpu_kernels/kernels/product.h"
#include "gpu_kernels/libraries/libraries.h"

namespace hearth::HEARTH_GPU {

/// One product without groups: c [rows, columns] is f32; product.h describes the forms. b is the
/// weight, or in wgrad the second activations.
struct DenseProduct {
  Form form = Form::forward;
  Operand a, b;
  int64_t rows = 0, columns = 0, depth = 0;
  float* c = nullptr;
  int64_t c_stride = 0;
  bool accumulate = false;
};

using ProductLibrary = LibraryFor<DenseProduct>;

/// The libraries of this build; the preferred library comes first.
LibraryList<ProductLibrary> product_libraries();

/// cuBLASLt, loaded at run time; the null twin in builds without its header.
const ProductLibrary& cublaslt_library();

}  // namespace hearth::HEARTH_GPU
