// Builds without CUTLASS's headers.
#include "gpu_kernels/grouped_choices.h"

namespace hearth::HEARTH_GPU {
namespace {

class NoCutlass final : public GroupedChoice {
 public:
  std::string_view name() const override { return "CUTLASS"; }
  std::string declines(GpuStream&, const GroupedProduct&) const override {
    return "this build is without it";
  }
  void run(GpuStream&, const GroupedProduct&, const ProductGroup*) const override {
    HEARTH_CHECK(false, "CUTLASS: not in this build");
  }
  size_t workspace_bytes(int64_t) const override { return 0; }
};

}  // namespace

const GroupedChoice& cutlass_choice() {
  static const NoCutlass choice;
  return choice;
}

}  // namespace hearth::HEARTH_GPU
