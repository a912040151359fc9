// Libraries for dense products, in order of preference; see choices.h.
#pragma once

#include <span>
#include <string>

#include "gpu_kernels/choices.h"
#include "gpu_kernels/product.h"

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

class ProductChoice : public Choice {
 public:
  /// Why it does not take this product; empty: it does.
  virtual std::string declines(GpuStream&, const DenseProduct&) const = 0;
  /// Enqueues what `declines` did not decline. Memory comes from the stream's scratch.
  virtual void run(GpuStream&, const DenseProduct&) const = 0;
  /// Of the scratch that a product takes, at most.
  virtual size_t workspace_bytes() const = 0;
};

/// Those of this build.
std::span<const ProductChoice* const> product_choices();

/// The largest of the choices' workspaces.
size_t product_workspace_bytes();

/// cuBLASLt, looked for when the program runs (gpu_kernels/cublaslt, or no_cublaslt in builds without
/// its header).
const ProductChoice& cublaslt_choice();

}  // namespace hearth::HEARTH_GPU
