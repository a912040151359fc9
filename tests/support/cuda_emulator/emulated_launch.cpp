#include "cuda_emulator/engine.h"
#include "device/refused_launch.h"
#include "support/fake_cuda.h"

namespace hearth::cuda_emulator {

void enqueue_grid(void* stream, const GridShape& shape, std::function<void()> kernel) {
  if (stream == nullptr) {
    run_grid(shape, kernel);
  } else {
    const CudaCode code = test::enqueue_on_fake_stream(
        stream, [shape, kernel = std::move(kernel)] { run_grid(shape, kernel); });
    if (code != kCudaOk) refuse_launch(stream, shape.name, code);
  }
}

}  // namespace hearth::cuda_emulator
