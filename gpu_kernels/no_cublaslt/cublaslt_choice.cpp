// Builds without cublasLt.h, and the emulated kernels.
#include "gpu_kernels/product_choices.h"

namespace hearth::HEARTH_GPU {
namespace {

class NoCublasLt final : public ProductChoice {
 public:
  std::string_view name() const override { return "cuBLASLt"; }
  std::string declines(GpuStream&, const DenseProduct&) const override {
    return "this build is without it";
  }
  void run(GpuStream&, const DenseProduct&) const override {
    HEARTH_CHECK(false, "cuBLASLt: not in this build");
  }
  size_t workspace_bytes() const override { return 0; }
};

}  // namespace

const ProductChoice& cublaslt_choice() {
  static const NoCublasLt choice;
  return choice;
}

}  // namespace hearth::HEARTH_GPU
