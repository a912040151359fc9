// Builds without the headers of cuDNN or of its frontend, and the emulated kernels.
#include "base/error.h"
#include "gpu_kernels/attention_choices.h"

namespace hearth::HEARTH_GPU {
namespace {

class NoCudnn final : public AttentionChoice {
 public:
  std::string_view name() const override { return "cuDNN"; }
  std::string declines(GpuStream&, const AttentionProblem&) const override {
    return "this build is without it";
  }
  void run(GpuStream&, const AttentionProblem&) const override {
    HEARTH_CHECK(false, "cuDNN: not in this build");
  }
  size_t scratch_bytes(int64_t, int64_t, int64_t, int64_t, int64_t) const override { return 0; }
};

}  // namespace

const AttentionChoice& cudnn_choice() {
  static const NoCudnn choice;
  return choice;
}

}  // namespace hearth::HEARTH_GPU
