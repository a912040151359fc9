// Libraries for the products of experts, in order of preference; see choices.h.
#pragma once

#include <span>
#include <string>

#include "gpu_kernels/choices.h"
#include "gpu_kernels/product.h"

namespace hearth::HEARTH_GPU {

/// One segment of a product of groups, see product.h for the forms. How many rows fall to which group
/// is known on the device alone.
struct GroupedProduct {
  Form form = Form::forward;
  int segment = 0;
  Operand a;                             // the activations of the segment
  Operand b;                             // wgrad: those on the right
  std::span<const ProductGroup> groups;  // host memory
  const int32_t* offsets = nullptr;      // device memory: the groups' rows
  int64_t rows = 0;                      // of the activations
  float* c = nullptr;                    // forward, dgrad
  int64_t c_stride = 0;
  bool accumulate = false;  // c +=, as always in wgrad
};

class GroupedChoice : public Choice {
 public:
  /// Why it does not take this product; empty: it does.
  virtual std::string declines(GpuStream&, const GroupedProduct&) const = 0;
  /// Enqueues what `declines` did not decline; `groups` is the product's table in device memory. Other
  /// memory comes from the stream's scratch.
  virtual void run(GpuStream&, const GroupedProduct&, const ProductGroup* groups) const = 0;
  /// Of the scratch that a product of so many groups takes, at most.
  virtual size_t workspace_bytes(int64_t groups) const = 0;
};

/// Those of this build.
std::span<const GroupedChoice* const> grouped_choices();

/// The largest of the choices' workspaces.
size_t grouped_workspace_bytes(int64_t groups);

/// What no library takes that copies bf16 operands 16 bytes at a time; empty: nothing is in its way.
std::string grouped_misfit(const GroupedProduct& product);

/// CUTLASS, compiled in (gpu_kernels/cutlass, or no_cutlass in builds without its headers).
const GroupedChoice& cutlass_choice();

}  // namespace hearth::HEARTH_GPU
