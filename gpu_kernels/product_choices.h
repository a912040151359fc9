// Ways to compute a dense product that may be faster than the kernels here, in order of preference.
// What none of them takes, the kernels do.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "gpu_kernels/gpu_stream.h"
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

/// A library that may be absent. Safe to call from several threads, each with its own stream.
class ProductChoice {
 public:
  virtual ~ProductChoice() = default;
  virtual std::string_view name() const = 0;
  /// Why it does not take this product; empty: it does. By shape alone, so that a run repeated makes
  /// the same choice.
  virtual std::string declines(GpuStream&, const DenseProduct&) const = 0;
  /// Enqueues what `declines` did not decline. Memory comes from the stream's scratch.
  virtual void run(GpuStream&, const DenseProduct&) const = 0;
  /// Of the scratch that a product takes, at most.
  virtual size_t workspace_bytes() const = 0;
};

/// Those of this build.
std::span<const ProductChoice* const> product_choices();

/// The first that takes the product, null where all decline. Each reason of a choice is said once in
/// the process, through `say`.
const ProductChoice* choose_product(std::span<const ProductChoice* const> choices, GpuStream&,
                                    const DenseProduct&,
                                    const std::function<void(const std::string&)>& say);

/// The largest of the choices' workspaces.
size_t product_workspace_bytes();

/// cuBLASLt, looked for when the program runs (gpu_kernels/cublaslt, or no_cublaslt in builds without
/// its header).
const ProductChoice& cublaslt_choice();

}  // namespace hearth::HEARTH_GPU
