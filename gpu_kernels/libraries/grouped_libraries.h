// The ordered list of libraries for the products of experts; see libraries.h.
#pragma once

#include <functional>
#include <span>
#include <string>

#include "gpu_kernels/kernels/product.h"
#include "gpu_kernels/libraries/libraries.h"

namespace hearth::HEARTH_GPU {

/// One segment of a grouped product; product.h describes the forms. Only the device knows the
/// number of rows of each group.
struct GroupedProduct {
  Form form = Form::forward;
  int segment = 0;
  Operand a;                             // activations of the segment
  Operand b;                             // wgrad: the activations on the right
  std::span<const ProductGroup> groups;  // host memory
  const int32_t* offsets = nullptr;      // device memory: the groups' rows (ProductArgs)
  int32_t offset_step = 1;
  int64_t rows = 0;    // of the activations
  float* c = nullptr;  // forward, dgrad
  int64_t c_stride = 0;
  bool accumulate = false;  // c +=; always set in wgrad
  /// Returns `groups` in device memory. Called only if a library takes the product.
  std::function<const ProductGroup*()> table;
};

/// Bound: the number of groups.
using GroupedLibrary = LibraryFor<GroupedProduct, int64_t>;

/// The libraries of this build; the preferred library comes first.
LibraryList<GroupedLibrary> grouped_libraries();

/// Why a library that copies bf16 operands 16 bytes at a time cannot take the product; empty: it
/// can.
std::string grouped_misfit(const GroupedProduct& product);

/// CUTLASS, compiled in; the null twin in builds without its headers.
const GroupedLibrary& cutlass_library();

}  // namespace hearth::HEARTH_GPU
