#include "cuda_emulator/plain_library.h"

#include <atomic>
#include <cstdlib>
#include <string_view>
#include <utility>

#include "cuda_emulator/emulated_launch.h"
#include "gpu_kernels/kernels/operand.cuh"
#include "gpu_kernels/libraries/product_libraries.h"

namespace hearth {
namespace {

using test::PlainLibrary;

PlainLibrary from_environment() {
  const char* text = std::getenv("HEARTH_PLAIN_LIBRARY");
  return text != nullptr && std::string_view(text) == "right" ? PlainLibrary::right
                                                              : PlainLibrary::absent;
}

std::atomic<PlainLibrary>& library() {
  static std::atomic<PlainLibrary> one = from_environment();
  return one;
}

}  // namespace

namespace test {
namespace {

std::function<void()>& before_product() {
  static std::function<void()> f;
  return f;
}

}  // namespace

void set_plain_library(PlainLibrary now, std::function<void()> before) {
  library() = now;
  before_product() = std::move(before);
}
PlainLibrary plain_library() { return library(); }
}  // namespace test

namespace HEARTH_GPU {
namespace {

// One thread does it all. The wrong library leaves the last product of each sum out.
__global__ void plain_product(DenseProduct p, int64_t left_out) {
  const auto element = [](const Operand& from, int64_t r, int64_t c) {
    return load_element(from.data, from.stored, r * from.stride + c);
  };
  for (int64_t r = 0; r < p.rows; ++r) {
    for (int64_t c = 0; c < p.columns; ++c) {
      float sum = 0;
      for (int64_t d = 0; d < p.depth - left_out; ++d) {
        const float a = p.form == Form::wgrad ? element(p.a, d, r) : element(p.a, r, d);
        const float b = p.form == Form::forward ? element(p.b, c, d) : element(p.b, d, c);
        sum += a * b;
      }
      float& to = p.c[r * p.c_stride + c];
      to = p.accumulate ? to + sum : sum;
    }
  }
}

class PlainProducts final : public ProductLibrary {
 public:
  std::string_view name() const override { return "cuBLASLt"; }
  std::string version() const override {
    return library() == PlainLibrary::absent ? "" : "of plain loops";
  }
  std::string declines(GpuStream&, const DenseProduct& p) const override {
    if (library() == PlainLibrary::absent) return "the emulator is without it";
    return p.a.stored == p.b.stored ? "" : "operands of differing types";
  }
  void run(GpuStream& stream, const DenseProduct& p) const override {
    if (library() == PlainLibrary::failing) throw device_error("the library fails");
    if (const auto& before = test::before_product()) before();
    launch(plain_product, 1, 1, 0, stream.handle(), p,
           int64_t{library() == PlainLibrary::wrong ? 1 : 0});
  }
  size_t scratch_bytes() const override { return 0; }
};

}  // namespace

const ProductLibrary& cublaslt_library() {
  static const PlainProducts library;
  return library;
}

}  // namespace HEARTH_GPU
}  // namespace hearth
