#include "cuda_emulator/engine.h"
#include "support/fake_cuda.h"

namespace hearth::cuda_emulator {

void enqueue_grid(void* stream, const GridShape& shape, std::function<void()> kernel) {
  if (stream == nullptr) {
    run_grid(shape, kernel);
  } else {
    test::enqueue_on_fake_stream(stream,
                                 [shape, kernel = std::move(kernel)] { run_grid(shape, kernel); });
  }
}

}  // namespace hearth::cuda_emulator
