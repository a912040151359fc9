#include "gpu_kernels/product_choices.h"

#include <algorithm>
#include <array>

namespace hearth::HEARTH_GPU {

std::span<const ProductChoice* const> product_choices() {
  static const std::array<const ProductChoice*, 1> choices = {&cublaslt_choice()};
  return choices;
}

size_t product_workspace_bytes() {
  size_t bytes = 0;
  for (const ProductChoice* choice : product_choices()) {
    bytes = std::max(bytes, choice->workspace_bytes());
  }
  return bytes;
}

}  // namespace hearth::HEARTH_GPU
