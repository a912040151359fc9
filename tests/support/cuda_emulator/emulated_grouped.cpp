#include "cuda_emulator/emulated_grouped.h"

#include <atomic>

#include "cuda_emulator/plain_library.h"
#include "gpu_kernels/kernels/grouped_problems.h"
#include "gpu_kernels/kernels/numbers.cuh"
#include "gpu_kernels/launch.h"

namespace hearth::HEARTH_GPU {
namespace {

using test::plain_library;
using test::PlainLibrary;

constexpr int kThreads = 64;

std::atomic<int64_t> products_run = 0;

__device__ float element(const void* data, int64_t i) {
  return bf16_to_float(static_cast<const uint16_t*>(data)[i]);
}

/// A block a group; the wrong library leaves the last product of each sum out. Sums over depth in order, from nothing, as the tables say that matrices lie.
__global__ void grouped_product(GroupedProblems problems, Form form, bool accumulate,
                                int64_t left_out) {
  const int g = static_cast<int>(blockIdx.x);
  const GroupedShape shape = problems.shape[g];
  const int64_t a_stride = problems.a_stride[g], b_stride = problems.b_stride[g];
  for (int64_t i = threadIdx.x; i < int64_t{shape.rows} * shape.columns; i += kThreads) {
    const int64_t row = i / shape.columns, column = i % shape.columns;
    float sum = 0;
    for (int64_t k = 0; k < shape.depth - left_out; ++k) {
      const float x =
          element(problems.a[g], form == Form::wgrad ? k * a_stride + row : row * a_stride + k);
      const float y = element(
          problems.b[g], form == Form::forward ? column * b_stride + k : k * b_stride + column);
      sum = fmaf(x, y, sum);
    }
    float& c = problems.c[g][row * problems.c_stride[g] + column];
    c = accumulate ? c + sum : sum;
  }
}

class EmulatedCutlass final : public GroupedLibrary {
 public:
  std::string_view name() const override { return "CUTLASS"; }
  std::string version() const override {
    return plain_library() == PlainLibrary::absent ? "" : "of plain loops";
  }
  std::string declines(GpuStream&, const GroupedProduct& product) const override {
    if (plain_library() == PlainLibrary::absent) return "the emulator is without it";
    return grouped_misfit(product);
  }
  void run(GpuStream& stream, const GroupedProduct& product) const override {
    if (plain_library() == PlainLibrary::failing) throw device_error("the library fails");
    Scratch::Frame frame(stream.scratch());
    const auto count = static_cast<int64_t>(product.groups.size());
    const GroupedProblems problems = take_grouped_problems(stream.scratch(), count);
    grouped_problems_on(stream.handle(), grouped_problem_args(product, product.table(), problems));
    launch(grouped_product, count, kThreads, 0, stream.handle(), problems, product.form,
           product.accumulate, int64_t{plain_library() == PlainLibrary::wrong ? 1 : 0});
    ++products_run;
  }
  size_t scratch_bytes(int64_t groups) const override { return grouped_problem_bytes(groups); }
};

}  // namespace

const GroupedLibrary& cutlass_library() {
  static const EmulatedCutlass library;
  return library;
}

}  // namespace hearth::HEARTH_GPU

int64_t hearth::test::emulated_grouped_products() { return hearth::HEARTH_GPU::products_run; }
