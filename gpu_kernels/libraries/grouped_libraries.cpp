#include "gpu_kernels/libraries/grouped_libraries.h"

#include <array>

namespace hearth::HEARTH_GPU {
namespace {

bool is_whole(const Operand& x) {
  return x.stored == Stored::bf16 && x.stride % 8 == 0 &&
         reinterpret_cast<uintptr_t>(x.data) % 16 == 0;
}

bool is_whole(const float* c, int64_t stride) {
  return stride % 4 == 0 && reinterpret_cast<uintptr_t>(c) % 16 == 0;
}

}  // namespace

LibraryList<GroupedLibrary> grouped_libraries() {
  static const std::array<const GroupedLibrary*, 1> list = {&cutlass_library()};
  return list;
}

std::string grouped_misfit(const GroupedProduct& p) {
  const bool wgrad = p.form == Form::wgrad;
  if (p.a.stored != Stored::bf16) return "operands that are not bf16";
  if (!is_whole(p.a) || (wgrad && !is_whole(p.b))) return "activations not in whole bf16 chunks";
  if (!wgrad && !is_whole(p.c, p.c_stride)) return "results not aligned to 16 bytes";
  for (const ProductGroup& group : p.groups) {
    const auto s = static_cast<size_t>(p.segment);
    const int32_t inner = wgrad ? group.rows : group.depth[s];
    if (group.columns == 0) continue;  // has nothing to compute
    if (inner == 0 && !wgrad && !p.accumulate) return "a sum of no terms";
    if (inner == 0) continue;
    if (group.columns % 8 != 0 || inner % 8 != 0) return "sizes that are not multiples of 8";
    if (wgrad ? !is_whole(group.c, group.c_stride)
              : !is_whole({group.weight[s], group.weight_stride[s], group.stored[s]})) {
      return wgrad ? "gradients not aligned to 16 bytes" : "weights not in whole bf16 chunks";
    }
  }
  return {};
}

}  // namespace hearth::HEARTH_GPU
